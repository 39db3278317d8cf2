#!/bin/bash
# usage: build.sh [--toolchain DIR] [--target-dir DIR] [--out DIR] [--test] [WORKSPACE]
#
# Builds every tool of a cargo workspace (default: this folder) as a component and copies them to --out (default:
# WORKSPACE/target/components). Without --toolchain, the Rust on the PATH is used, with its target wasm32-wasip2. With
# --toolchain, one that setup-toolchain.sh made: then the bytes are the same on every machine and in every folder.
# Workspaces that are given the same --target-dir (default: WORKSPACE/target) compile what they both depend on once.
# With --test, the unit tests of the workspace run as well, on this machine.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repository=$(dirname "$here")
toolchain='' build='' out='' test='' workspace=$here

fail() {
  echo "Cannot build the Rust tools: $1" >&2
  exit 1
}

folder() {
  [ -d "$1" ] || fail "there is no folder $1"
  (cd "$1" && pwd)
}

while [ $# -gt 0 ]; do
  case $1 in
  --toolchain | --target-dir | --out)
    [ $# -ge 2 ] || fail "$1 needs a folder"
    case $1 in
    --toolchain) toolchain=$(folder "$2") ;;
    --target-dir) build=$2 ;;
    --out) out=$2 ;;
    esac
    shift 2
    ;;
  --test)
    test=yes
    shift
    ;;
  -*) fail "unknown option $1" ;;
  *)
    workspace=$(folder "$1")
    shift
    ;;
  esac
done
command -v cargo >/dev/null || fail "there is no cargo on the PATH; install Rust first, with rustup or as the package cargo"

target=wasm32-wasip2
build=$(mkdir -p "${build:-$workspace/target}" && cd "${build:-$workspace/target}" && pwd)
if [ -n "$toolchain" ]; then
  recipe=$("$here/setup-toolchain.sh" --recipe)
  [ "$(cat "$toolchain/complete" 2>/dev/null)" = "$recipe" ] ||
    fail "$toolchain holds no complete toolchain of the recipe '$recipe'; run $here/setup-toolchain.sh $toolchain"
  export RUSTC=$toolchain/bin/rustc RUSTDOC=$toolchain/bin/rustdoc PATH=$toolchain/bin:$PATH
  # Cargo does not notice another linker, so each toolchain has a folder of its own.
  build=$build/$(sha256sum "$toolchain/complete" | cut -c 1-12)
elif [ ! -d "$(rustc --print target-libdir --target $target 2>/dev/null)" ]; then
  fail "this Rust has no standard library for $target; run 'rustup target add $target', or on Debian
$here/setup-toolchain.sh DIR and then $0 --toolchain DIR"
fi
out=$(mkdir -p "${out:-$build/components}" && cd "${out:-$build/components}" && pwd)

# Paths get into panic messages: name them alike everywhere. The folders of the registry differ with the mirror in use.
cd "$workspace"
cargo fetch --quiet --locked
flags=(--remap-path-prefix="$repository=/brain")
for crates in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do flags+=(--remap-path-prefix="${crates%/}=/crates"); done
CARGO_ENCODED_RUSTFLAGS=$(
  IFS=$'\x1f'
  echo "${flags[*]}"
)
export CARGO_ENCODED_RUSTFLAGS
unset RUSTFLAGS

rm -f "$build/$target/release"/*.wasm # of tools that are gone
cargo build --release --locked --target $target --target-dir "$build"
for component in "$build/$target/release"/*.wasm; do
  name=$(basename "$component")
  cp "$component" "$out/${name//_/-}"
done
(cd "$out" && sha256sum ./*.wasm)

[ -n "$test" ] || exit 0
# What the compiler itself runs, macros above all, is most of what there is to compile. It is compiled once for components
# and tests where both have one profile and one folder; so here the flags take back what that profile does to components.
flags=(-Clto=off -Clinker-plugin-lto=no -Copt-level=0 -Ccodegen-units=16 -Cdebug-assertions=yes -Cpanic=unwind)
CARGO_ENCODED_RUSTFLAGS=$(
  IFS=$'\x1f'
  echo "${flags[*]}"
)
host=$("${RUSTC:-rustc}" -vV | sed -n 's/^host: //p')
tests=(--quiet --release --locked --target "$host" --target-dir "$build")
cargo test --lib "${tests[@]}"
[ ! -d brain-tool ] || RUSTDOCFLAGS=-Clto=off cargo test --doc --package brain-tool "${tests[@]}" # the examples in its comments
