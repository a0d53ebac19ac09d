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
cargo build --offline --locked --release --examples
# The README's first program, as somebody copies it; the step readme has the other one.
mkdir -p "$CARGO_TARGET_DIR/readme/src"
awk '/^```$/ { if (on) exit } on { print } /^```rust$/ { on = 1 }' "$MUSTER_ROOT/README.md" >"$CARGO_TARGET_DIR/readme/src/main.rs"
printf '[package]\nname = "readme"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nmuster = { path = "%s" }\n[workspace]\n' \
    "$PWD/muster" >"$CARGO_TARGET_DIR/readme/Cargo.toml"
[ "$(cd "$CARGO_TARGET_DIR/readme" && timeout -k 10 100 cargo run --offline --quiet)" = 800000 ]
timeout -k 10 400 cargo test --offline --locked --release
if command -v rustfmt >/dev/null; then cargo fmt --all -- --check; fi
