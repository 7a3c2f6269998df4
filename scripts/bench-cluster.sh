#!/usr/bin/env bash
# usage: scripts/bench-cluster.sh
# Load on three nodes and two gateways of a release build, in turns with a three-node etcd where there is one
# (docs/benchmarks.md). One JSON line for each point, then the medians, go to standard output; the table and the progress
# to standard error. BENCH_CLIENTS, BENCH_SECONDS, BENCH_ROUNDS and BENCH_OPERATIONS choose what is measured, BENCH_DATA
# where the data lie, ETCD which etcd.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
scripts/rocksdb.sh > /dev/null
source scripts/env.sh
say "building waggle and the load generator (release)"
cargo build --release -p waggle -p waggle-tests --bins >&2
export WAGGLE_BIN=$CARGO_TARGET_DIR/release/waggle
# One that was unpacked without installing it, so that no service starts (docs/benchmarks.md).
if [ -z "${ETCD:-}" ] && ! command -v etcd > /dev/null && [ -x "$WAGGLE_CACHE/etcd/usr/bin/etcd" ]; then
    export ETCD=$WAGGLE_CACHE/etcd/usr/bin/etcd
fi
bounded "${BENCH_LIMIT_SECONDS:-7200}" "$CARGO_TARGET_DIR/release/waggle-bench-cluster" "$@"
