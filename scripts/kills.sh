#!/usr/bin/env bash
# usage: [WAGGLE_KILLS=200] [WAGGLE_SEED=...] scripts/kills.sh
# Kills a writing server over and over (tests/tests/kill_nine.rs) and looks for what was acknowledged and is lost.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
scripts/rocksdb.sh > /dev/null
source scripts/env.sh
say "building"
cargo build -p waggle
export WAGGLE_BIN=$CARGO_TARGET_DIR/debug/waggle WAGGLE_KILLS=${WAGGLE_KILLS:-200}
say "$WAGGLE_KILLS kills"
bounded "${WAGGLE_KILLS_SECONDS:-7200}" cargo test -p waggle-tests --test kill_nine -- --nocapture
