#!/usr/bin/env bash
# usage: scripts/rocksdb.sh
# Compiles RocksDB once for this machine and prints the directory that holds librocksdb.a. The C++ takes ten minutes and
# more; kept outside of cargo's target directory it survives `cargo clean`, a change of profile and another checkout.
# The version comes from Cargo.lock, so an upgrade there leads to a new directory and a new build.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"

dir=$(waggle_rocksdb_dir)
if [ -f "$dir/librocksdb.a" ]; then
    echo "$dir"
    exit 0
fi
mkdir -p "$WAGGLE_CACHE/rocksdb"

# Two callers must not compile the same thing side by side: the second waits, then finds it done.
if command -v flock > /dev/null; then
    exec 9> "$dir.lock"
    if ! flock -n 9; then
        say "RocksDB: somebody else on this machine is compiling it; waiting"
        flock 9
    fi
    if [ -f "$dir/librocksdb.a" ]; then
        echo "$dir"
        exit 0
    fi
fi

version=$(waggle_rocksdb_version)
if [ -z "$version" ]; then
    say "RocksDB: Cargo.lock names no librocksdb-sys"
    exit 1
fi
work=$dir.build
mkdir -p "$work/src"
touch "$work/src/lib.rs"
features=$(printf '"%s", ' $WAGGLE_ROCKSDB_FEATURES)
cat > "$work/Cargo.toml" << TOML
[package]
name = "waggle-rocksdb-once"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
librocksdb-sys = { version = "=${version%%+*}", default-features = false, features = [${features%, }] }

[profile.release]
opt-level = $WAGGLE_ROCKSDB_OPT_LEVEL
debug = 0

[workspace]
TOML
# The same lz4 and zstd as ours, whose headers go into the library; cargo drops the rest of the list.
cp "$WAGGLE_ROOT/Cargo.lock" "$work/Cargo.lock"

say "RocksDB: compiling librocksdb-sys $version, once for this machine (log: $work/build.log)"
unset ROCKSDB_LIB_DIR ROCKSDB_STATIC RUSTFLAGS
if [ -n "$WAGGLE_ROCKSDB_CXXFLAGS" ]; then export CXXFLAGS=$WAGGLE_ROCKSDB_CXXFLAGS; else unset CXXFLAGS; fi
cargo build --release --manifest-path "$work/Cargo.toml" --target-dir "$work/target" -p librocksdb-sys \
    > "$work/build.log" 2>&1 9>&- &
build=$!
# Whoever stops this script stops the compilers too.
trap 'kill "$build" 2> /dev/null || true' EXIT

sources=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -path "*/librocksdb-sys-$version/rocksdb_lib_sources.txt" \
    -exec cat {} + 2> /dev/null | wc -l | tr -d ' ')
shown=-1
while kill -0 "$build" 2> /dev/null; do
    [ "$sources" -gt 0 ] || sources=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" \
        -path "*/librocksdb-sys-$version/rocksdb_lib_sources.txt" -exec cat {} + 2> /dev/null | wc -l | tr -d ' ')
    done_now=$(find "$work/target/release/build" -path '*librocksdb-sys-*/out/*.o' 2> /dev/null | wc -l | tr -d ' ')
    if [ "$done_now" != "$shown" ]; then
        say "RocksDB: $done_now of ${sources/#0/about 343} files"
        shown=$done_now
    fi
    sleep 5 # the pace of the messages, not a wait for a result
done
if ! wait "$build"; then
    trap - EXIT
    say "RocksDB: the build failed. The end of $work/build.log:"
    tail -n 30 "$work/build.log" >&2
    exit 1
fi
trap - EXIT

library=$(find "$work/target/release/build" -path '*librocksdb-sys-*/out/librocksdb.a' | head -n 1)
mkdir -p "$dir"
cp "$library" "$dir/librocksdb.a.new"
mv "$dir/librocksdb.a.new" "$dir/librocksdb.a" # a reader sees all of it or nothing
rm -rf "$work"
say "RocksDB: done, $(du -h "$dir/librocksdb.a" | cut -f1 | tr -d ' ') in $dir"
echo "$dir"
