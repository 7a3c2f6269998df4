#!/usr/bin/env bash
# usage: scripts/bench.sh
# Load on a release build over MCP (tests/bench/README.md). One JSON line for each figure goes to standard output, the
# table and the progress to standard error. BENCH_SIZES, BENCH_CLIENTS and BENCH_SECONDS choose what is measured.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
scripts/rocksdb.sh > /dev/null
source scripts/env.sh
say "building waggle, the encoder's measure and the load generator (release)"
cargo build --release -p waggle -p waggle-recall -p waggle-tests --bins >&2
export WAGGLE_BIN=$CARGO_TARGET_DIR/release/waggle
export WAGGLE_ENCODER_BENCH=$CARGO_TARGET_DIR/release/waggle-encoder-bench
bounded "${BENCH_LIMIT_SECONDS:-7200}" "$CARGO_TARGET_DIR/release/waggle-bench" "$@"
