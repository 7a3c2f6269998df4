#!/usr/bin/env bash
# usage: scripts/with-dev.sh BINARY [waggle dev options...] -- COMMAND...
# Starts `waggle dev` on a free loopback port with data of its own, runs COMMAND with WAGGLE_MCP_URL, WAGGLE_MCP_KEY and
# WAGGLE_PID set, and ends the server with SIGTERM. Fails when the command fails, and when the server does not come up,
# dies on the way, or does not end with 0. WAGGLE_DATA keeps the data: it names the directory to use.
set -euo pipefail
binary=${1:?usage: with-dev.sh BINARY [options...] -- COMMAND...}
shift
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
done
shift
work=$(mktemp -d)
server=
finish() {
    local code=$?
    if [ -n "$server" ] && kill -0 "$server" 2> /dev/null; then
        kill -KILL "$server" 2> /dev/null || true
        wait "$server" 2> /dev/null || true
    fi
    [ "$code" = 0 ] || {
        echo "--- the last lines of the server's log"
        tail -n 40 "$work/stderr"
    } >&2
    rm -rf "$work"
    exit "$code"
}
trap finish EXIT

"$binary" dev --json --listen 127.0.0.1:0 --data "${WAGGLE_DATA:-$work/data}" ${options[@]+"${options[@]}"} \
    > "$work/stdout" 2> "$work/stderr" &
server=$!
deadline=$((SECONDS + ${WAGGLE_READY_SECONDS:-60}))
until grep -q '"mcp_url"' "$work/stdout" 2> /dev/null; do
    if ! kill -0 "$server" 2> /dev/null; then
        echo "waggle dev ended before it was ready" >&2
        exit 1
    fi
    if [ $SECONDS -ge $deadline ]; then
        echo "waggle dev was not ready in time" >&2
        exit 1
    fi
    sleep 0.1
done
ready=$(grep -m 1 '"mcp_url"' "$work/stdout")
field() { printf '%s' "$ready" | python3 -c "import json, sys; print(json.load(sys.stdin)['$1'])"; }
WAGGLE_MCP_URL=$(field mcp_url)
WAGGLE_MCP_KEY=$(field api_key)
export WAGGLE_MCP_URL WAGGLE_MCP_KEY WAGGLE_PID=$server

code=0
"$@" || code=$?

if ! kill -TERM "$server" 2> /dev/null; then
    echo "waggle dev died while the command ran" >&2
    exit 1
fi
deadline=$((SECONDS + 30))
while kill -0 "$server" 2> /dev/null; do
    if [ $SECONDS -ge $deadline ]; then
        echo "waggle dev did not end within 30 s of SIGTERM" >&2
        exit 1
    fi
    sleep 0.1
done
ended=0
wait "$server" || ended=$?
if [ $ended != 0 ]; then
    echo "waggle dev ended with $ended after SIGTERM, not 0" >&2
    exit 1
fi
exit $code
