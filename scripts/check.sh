#!/usr/bin/env bash
# usage: scripts/check.sh
# The quick half of test.sh, for between two edits: format, clippy and the tidy rules. Changes nothing.
set -uo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
step "RocksDB" 3600 scripts/rocksdb.sh > /dev/null
source scripts/env.sh
step "format" 120 cargo fmt --all --check
step "clippy" 2400 cargo clippy --workspace --all-targets -- -D warnings
step "tidy" 1200 cargo test --quiet -p waggle-tests --test tidy
steps_summary
