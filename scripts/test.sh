#!/usr/bin/env bash
# usage: [TEST_STEPS="format clippy tests docs mcp"] scripts/test.sh
# Everything that must be green before a change lands, from set-up to real MCP clients against a real server. Goes on
# after a failure, so that one run shows all of them; only what cannot work without the failed step is left out.
# docs/testing.md says what each step is for.
set -uo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
export RUST_LIB_BACKTRACE=0 # an error says where it comes from in words; panics keep their traces

wanted=${TEST_STEPS:-format clippy deny tests docs mcp}
wants() { [[ " $wanted " == *" $1 "* ]]; }
# A change of dependencies belongs into Cargo.lock; where nobody looks, it must not happen by itself.
locked=()
[ -n "${CI:-}" ] && locked=(--locked)

finish() {
    steps_summary
    exit $?
}

step "set-up" 1800 scripts/setup.sh --tests || finish
step "RocksDB" 3600 scripts/rocksdb.sh || finish
source scripts/env.sh # now with RocksDB's directory

if wants format; then
    step "format" 120 cargo fmt --all --check
fi
if wants deny; then
    if cargo deny --version > /dev/null 2>&1; then
        # Advisories need a database from the network: they are a job of their own.
        step "deny" 300 cargo deny check bans licenses sources
    elif [ -n "${WAGGLE_DENY:-}" ]; then
        step "deny" 1800 bash -c 'cargo install --locked cargo-deny && cargo deny check bans licenses sources'
    else
        skip_step "deny" "cargo-deny is not installed (WAGGLE_DENY=1 installs it); tests/tests/tidy.rs checks the important bans"
    fi
fi
if wants clippy; then
    step "clippy" 2400 cargo clippy ${locked[@]+"${locked[@]}"} --workspace --all-targets -- -D warnings
fi
built=
if wants tests || wants mcp; then
    # The tests of processes need the binary; cargo does not build it for the tests of another package.
    step "build" 3600 cargo build ${locked[@]+"${locked[@]}"} -p waggle && built=1
    export WAGGLE_BIN=$CARGO_TARGET_DIR/debug/waggle
fi
if wants tests; then
    if [ -z "$built" ]; then
        skip_step "tests" "the build failed"
    else
        if cargo nextest --version > /dev/null 2>&1; then
            profile=default
            [ -n "${CI:-}" ] && profile=ci
            step "tests" 3600 cargo nextest run ${locked[@]+"${locked[@]}"} --workspace --profile $profile
        else
            step "tests" 3600 cargo test ${locked[@]+"${locked[@]}"} --workspace --lib --bins --tests
        fi
        step "examples in the documentation" 1200 cargo test ${locked[@]+"${locked[@]}"} --workspace --doc
    fi
fi
if wants docs; then
    step "documentation" 1200 env RUSTDOCFLAGS="-D warnings" cargo doc ${locked[@]+"${locked[@]}"} --workspace --no-deps
fi
if wants mcp; then
    if [ -z "$built" ]; then
        skip_step "MCP" "the build failed"
    elif step "MCP: install the clients" 900 tests/mcp/prepare.sh; then
        out=${MCP_OUT:-$WAGGLE_CACHE/mcp/results}
        [ -n "${MCP_OUT:-}" ] || rm -rf "$out" # those of the last run
        step "MCP: clients" 600 scripts/with-dev.sh "$WAGGLE_BIN" -- \
            bash -c 'tests/mcp/clients.sh "$WAGGLE_MCP_URL" "$WAGGLE_MCP_KEY"'
        step "MCP: inspector" 600 scripts/with-dev.sh "$WAGGLE_BIN" -- \
            bash -c 'tests/mcp/inspector.sh "$WAGGLE_MCP_URL" "$WAGGLE_MCP_KEY"'
        step "MCP: conformance" 900 scripts/with-dev.sh "$WAGGLE_BIN" --conformance-fixtures -- \
            bash -c 'tests/mcp/conformance.sh "$WAGGLE_MCP_URL" "$WAGGLE_MCP_KEY" "$0"' "$out"
    fi
fi
finish
