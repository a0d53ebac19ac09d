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
# A program in a folder of its own, whose dependencies are the packages, with the library built from the sources in them.
mkdir -p "$packages/crates" "$packages/program/src"
for crate in "$packages"/*.crate; do
    tar -xzf "$crate" -C "$packages/crates"
    printf '{"files":{},"package":"%s"}' "$(sha256sum "$crate" | cut -d ' ' -f 1)" \
        >"$packages/crates/$(basename "$crate" .crate)/.cargo-checksum.json"
done
cat >"$packages/program/Cargo.toml" <<'TOML'
[package]
name = "program"
version = "0.1.0"
edition = "2021"
[dependencies]
muster = { version = "0.1", features = ["vendored"] }
TOML
cat >"$packages/program/src/main.rs" <<'RUST'
use std::io::{Read, Write};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = muster::Context::new()?;
    let (mut near, mut far) = muster::Stream::pair(&context)?;
    near.write_all(b"vendored")?;
    near.finish()?;
    let mut text = String::new();
    far.read_to_string(&mut text)?;
    println!("{}", text);
    Ok(())
}
RUST
(
    cd "$packages/program"
    mkdir .cargo
    printf '[source.crates-io]\nreplace-with = "packages"\n[source.packages]\ndirectory = "%s"\n' "$packages/crates" >.cargo/config.toml
    unset LD_LIBRARY_PATH MUSTER_LIBRARY
    export CARGO_TARGET_DIR="$packages/program/target" PKG_CONFIG=/bin/false
    [ "$(cargo run --quiet --offline)" = vendored ]
)
env -u MUSTER_LIBRARY RUSTDOCFLAGS="-D warnings" DOCS_RS=1 CARGO_TARGET_DIR="$packages/docs" cargo doc --quiet --offline --locked --no-deps
[ -e "$packages/docs/doc/muster/index.html" ]
