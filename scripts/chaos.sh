#!/usr/bin/env bash
# usage: [CHAOS_SECONDS=60] [CHAOS_SEED=1] scripts/chaos.sh [options of waggle-chaos]
# A cluster of real processes under faults, and a verdict on what its clients were told: docs/chaos.md. WAGGLE_BIN names
# another binary than the one that is built here.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
scripts/rocksdb.sh > /dev/null
source scripts/env.sh
say "building"
[ -n "${WAGGLE_BIN:-}" ] || cargo build -p waggle
cargo build -p waggle-chaos
seconds=${CHAOS_SECONDS:-60}
say "$seconds s of chaos"
bounded $((seconds * 2 + 1200)) "$CARGO_TARGET_DIR/debug/waggle-chaos" --waggle "${WAGGLE_BIN:-$CARGO_TARGET_DIR/debug/waggle}" \
    --seconds "$seconds" --seed "${CHAOS_SEED:-1}" "$@"
