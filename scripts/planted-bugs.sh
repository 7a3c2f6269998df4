#!/usr/bin/env bash
# usage: [BUGS="apply-twice skip-applied-id ignore-dedupe ack-before-sync"] [CHAOS_SECONDS=20] [CHAOS_SEEDS="1 2 3"]
#        scripts/planted-bugs.sh
# Puts known bugs back, one after the other, and demands that chaos finds each within its seeds; and that the same binary
# without a bug passes, power cuts included. A harness that finds nothing proves nothing: docs/chaos.md.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
scripts/rocksdb.sh > /dev/null
source scripts/env.sh
say "building with planted bugs"
cargo build -p waggle-chaos
cargo build -p waggle -p waggle-store --features waggle-store/planted-bugs
# Aside: the next plain build puts its own binary at the usual place.
planted=$CARGO_TARGET_DIR/debug/planted
mkdir -p "$planted"
cp -f "$CARGO_TARGET_DIR/debug/waggle" "$CARGO_TARGET_DIR/debug/waggle-power-cut" "$planted/"
seconds=${CHAOS_SECONDS:-20}

# chaos SEED OPTIONS...   gives its exit code
chaos() {
    local seed=$1 code=0
    shift
    bounded $((seconds * 2 + 600)) "$CARGO_TARGET_DIR/debug/waggle-chaos" --waggle "$planted/waggle" \
        --seconds "$seconds" --seed "$seed" "$@" > "$planted/out" 2>&1 || code=$?
    return $code
}

# Faults under which a bug shows.
faults() {
    case $1 in
        ack-before-sync) echo power-cut ;;
        skip-applied-id) echo restart-one,kill-one,kill-all ;;
        *) echo kill-the-leader,pause-the-leader,connection-resets ;;
    esac
}

found() {
    local bug=$1 seed code
    for seed in ${CHAOS_SEEDS:-1 2 3}; do
        code=0
        chaos "$seed" --faults "$(faults "$bug")" --planted-bug "$bug" || code=$?
        grep -E '^ {4}|VERDICT|fail|FAIL' "$planted/out" | head -8 || true
        if [ $code = 1 ]; then
            say "$bug: found with seed $seed"
            return 0
        fi
        say "$bug: seed $seed ended with $code"
    done
    return 1
}

passes() {
    chaos 1 --faults power-cut,kill-all,restart-one,kill-the-leader && return 0
    tail -40 "$planted/out"
    return 1
}

step "no bug: passes" 3600 passes || true
for bug in ${BUGS:-apply-twice skip-applied-id ignore-dedupe ack-before-sync}; do
    step "$bug: is found" 3600 found "$bug" || true
done
steps_summary
