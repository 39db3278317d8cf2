#!/bin/bash
# usage: generate.sh [OUT]
#
# After a change of the WIT, or with a new version of wit-bindgen: writes the bindings of the crates that keep theirs as text,
# because the generator takes longer to compile than all of them. SHA256SUMS then says what they were made of; tests hold all
# of it to that. With OUT, the bindings are written below that folder and nothing here is touched.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cd "$here"
cargo run --quiet --locked --target-dir "$here/../target/bindings" -- "$repository" "${1:-$repository}"
[ $# = 0 ] || exit 0

cd "$repository"
sha256sum wit/{agentloop,tool}.wit examples-rust/bindings/{Cargo.lock,Cargo.toml,src/main.rs} \
  {examples-rust/{agentloop,brain-tool},test/fixtures/guests-rust/foreign-files}/src/bindings.rs >"$here/SHA256SUMS"
