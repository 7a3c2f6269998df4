#!/usr/bin/env bash
# usage: scripts/run.sh [waggle dev options...]
# From a fresh clone to a running server: installs what is missing, compiles, starts `waggle dev`.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"

say "step 1 of 3: set-up"
scripts/setup.sh
say "step 2 of 3: RocksDB"
scripts/rocksdb.sh > /dev/null
source scripts/env.sh # now with RocksDB's directory
say "step 3 of 3: waggle"
cargo build --release -p waggle
say "ready to start"
exec "$CARGO_TARGET_DIR/release/waggle" dev "$@"
