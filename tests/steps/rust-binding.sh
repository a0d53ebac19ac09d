# SPDX-License-Identifier: MIT
# about: the Rust binding: generated part in step, layouts; streams, traits, clusters of Rust programs over tcp, shm, a star
# tier: full
# parts: hosts
# presets: release
# timeout: 600
set -eu
command -v cargo >/dev/null || { echo "cargo is not there (packages rustc and cargo)"; exit 77; }
"$MUSTER_ROOT/bindings/rust/generate" --check
export MUSTER_LIBRARY="$MUSTER_BUILD/libmuster.so" MUSTER_PLUGIN_PATH="$MUSTER_BUILD/plugins"
export LD_LIBRARY_PATH="$MUSTER_BUILD" CARGO_TARGET_DIR="$MUSTER_BUILD/rust" CARGO_TERM_COLOR=never
cd "$MUSTER_ROOT/bindings/rust"
rustc --version
profile=''
if [ "$MUSTER_TIER" = long ]; then profile=--release; fi # the full tier has what the cookbook and the clusters build, too
# shellcheck disable=SC2086
cargo build --offline --locked $profile --examples
# shellcheck disable=SC2086
timeout -k 10 400 cargo test --offline --locked $profile
if command -v rustfmt >/dev/null; then cargo fmt --all -- --check; fi
[ "$MUSTER_TIER" = long ] || exit 0
# Each crate compiles from its package; without the library where the pages of docs.rs are made.
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
"$MUSTER_ROOT/bindings/rust/package" "$packages"
ls "$packages"
env -u MUSTER_LIBRARY RUSTDOCFLAGS="-D warnings" DOCS_RS=1 CARGO_TARGET_DIR="$packages/docs" cargo doc --quiet --offline --locked --no-deps
[ -e "$packages/docs/doc/muster/index.html" ]
