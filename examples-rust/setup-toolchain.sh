#!/bin/bash
# usage: setup-toolchain.sh DIR
#        setup-toolchain.sh --recipe    prints what a toolchain in DIR must be made of
#
# Puts the compiler and linkers that made the committed components into DIR, so that a build gives the same bytes on
# every machine: Rust 1.85.1 with its wasm32 standard libraries and LLD 19 from Debian 13, wasm-component-ld 0.5.21 from
# source. Nothing is installed, and no root is needed: the packages are unpacked and started by their own loader.
# About 200 MB are downloaded from the package mirror that this machine already uses; DIR then holds about 800 MB.
#
# Nobody needs this to build a tool: `rustup target add wasm32-wasip2` is enough (README.md).
set -euo pipefail

rust_version=1.85.1
component_ld_version=0.5.21
recipe="2 rust $rust_version lld 19 wasm-component-ld $component_ld_version"

fail() {
  echo "Cannot set up the Rust toolchain: $1" >&2
  exit 1
}

if [ "${1:-}" = --recipe ]; then
  echo "$recipe"
  exit 0
fi
[ $# = 1 ] || fail "usage: $0 DIR"

# The compiler beside it cannot be started without the script of that name, and another one only by an unstable option.
start_rustdoc() { # start_rustdoc BIN
  sed -e 's|/usr/bin/rustc"|/usr/bin/rustdoc" -Zunstable-options --test-builder "$root/../bin/rustc"|' \
    -e 's/^exec /RUSTC_BOOTSTRAP=1 exec /' "$1/rustc" >"$1/rustdoc"
  chmod +x "$1/rustdoc"
}

dir=$(mkdir -p "$1" && cd "$1" && pwd)
if [ -f "$dir/complete" ] && [ "$(cat "$dir/complete")" = "$recipe" ]; then
  [ -x "$dir/bin/rustdoc" ] || start_rustdoc "$dir/bin" # those that were made before lack it
  echo "Rust toolchain is there: $dir"
  exit 0
fi

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
command -v cargo >/dev/null ||
  fail "there is no cargo on the PATH; install Rust first, with rustup or as the package cargo"
command -v apt-get >/dev/null && [ -r "$keyring" ] ||
  fail "it comes as Debian packages and this is no Debian system; build with 'rustup target add wasm32-wasip2' instead"

work=$(mktemp -d "$dir/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,root,debs} "$work"/apt/{lists,cache/archives}/partial "$work"/apt/etc/{parts,preferences.d,sources.d}

# The machine's own mirror, asked for another release, with state of its own: the system's apt sees nothing of it.
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1 || true)
[ -n "$mirror" ] || fail "apt knows no package mirror; run 'apt-get update' as root first"
echo "deb [signed-by=$keyring] $mirror trixie main" >"$work/apt/etc/sources.list"
touch "$work/apt/status"
cat >"$work/apt/apt.conf" <<CONF
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
Dir::Etc "$work/apt/etc";
Dir::Etc::sourcelist "$work/apt/etc/sources.list";
Dir::Etc::sourceparts "$work/apt/etc/sources.d";
Dir::Etc::preferencesparts "$work/apt/etc/preferences.d";
Dir::Etc::parts "$work/apt/etc/parts";
Acquire::Languages "none";
APT::Sandbox::User "$(id -un)";
CONF
export APT_CONFIG=$work/apt/apt.conf

echo "Reading the package lists of Debian 13"
apt-get update -qq
echo "Downloading Rust $rust_version and LLD 19 (about 200 MB)"
packages=(rustc libstd-rust-1.85 libstd-rust-dev libstd-rust-dev-wasm32 lld-19 libllvm19 libc6 libgcc-s1 libstdc++6
  zlib1g libzstd1 libxml2 libedit2 libtinfo6 libbsd0 libmd0 libffi8 liblzma5 libz3-4)
(cd "$work/debs" && apt-get download -qq "${packages[@]}")
echo "Unpacking"
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/root"; done
rm -rf "$work"/root/usr/share/{doc,man,locale}

# Debian 13's programs on whatever libc this machine has.
loader=$(cd "$work/root" && find usr/lib usr/lib64 -name 'ld-linux-*.so.*' | head -n 1)
libraries=$(cd "$work/root" && dirname "$(find usr/lib -name 'libc.so.6' | head -n 1)")
start() { # start NAME PROGRAM
  cat >"$work/bin/$1" <<SH
#!/bin/sh
root=\$(dirname "\$(readlink -f "\$0")")/../root
exec "\$root/$loader" --library-path "\$root/$libraries" --argv0 "$1" "\$root/$2" "\$@"
SH
  chmod +x "$work/bin/$1"
}
start rustc usr/bin/rustc
start_rustdoc "$work/bin"
start wasm-ld usr/lib/llvm-19/bin/lld
"$work/bin/rustc" -V | grep -q "^rustc $rust_version " ||
  fail "the mirror's compiler is $("$work/bin/rustc" -V), not $rust_version"

# The linker of the same version that comes with Rust will not do: it carries another build of the WASI adapter. Without
# optimisation it is made in half the time and links the same.
echo "Building wasm-component-ld $component_ld_version (about a minute)"
cargo install --quiet --debug --locked --version "$component_ld_version" --root "$work/cargo" wasm-component-ld
mv "$work/cargo/bin/wasm-component-ld" "$work/bin/"

rm -rf "$dir/complete" "$dir/root" "$dir/bin"
mv "$work/root" "$work/bin" "$dir/"

echo "$recipe" >"$dir/complete"
echo "Rust toolchain is ready: $dir"
