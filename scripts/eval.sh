#!/usr/bin/env bash
# usage: DATA=directory scripts/eval.sh [options of tests/eval/locomo.py]
# Recall quality on a data set that is not part of this project (tests/eval/README.md), against a release build.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
if [ -z "${DATA:-}" ]; then
    say "DATA is not set. It names the directory with the data set: make eval DATA=directory (see tests/eval/README.md)"
    exit 2
fi
if [ -z "${WAGGLE_URL:-}" ]; then
    scripts/rocksdb.sh > /dev/null
    source scripts/env.sh
    say "building waggle (release)"
    cargo build --release -p waggle >&2
    export WAGGLE_BIN=$CARGO_TARGET_DIR/release/waggle
fi
exec python3 tests/eval/locomo.py --data "$DATA" "$@"
