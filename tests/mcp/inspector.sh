#!/usr/bin/env bash
# usage: tests/mcp/inspector.sh URL KEY
# The MCP inspector's strict lint of our tool schemas, on every toolset and in both eras, and a call of one tool. Its
# exit code is 6 for a schema that is wrong and 5 for a tool that answers with an error. Its report goes to the error
# output; any line there fails here, because some client drops the whole list for what the inspector only warns of.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
url=${1:?usage: inspector.sh URL KEY}
key=${2:?usage: inspector.sh URL KEY}
place=$("$here/prepare.sh")
source "$here/../../scripts/env.sh"
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
passed=0
failed=0

inspect() { # inspect LABEL URL WORDS...
    local label=$1 at=$2 code=0
    shift 2
    timeout 60 "$place/inspector/node_modules/.bin/mcp-inspector" --cli "$at" --transport http \
        --header "Authorization: Bearer $key" "$@" > "$log/out" 2> "$log/err" < /dev/null || code=$?
    if [ "$code" = 0 ] && ! grep -vE '^\(node:|^\(Use `node' "$log/err" | grep -q .; then
        passed=$((passed + 1))
        echo "ok   inspector $label"
    else
        failed=$((failed + 1))
        echo "FAIL inspector $label (exit code $code)"
        tail -n 20 "$log/err" | cut -c1-300
    fi
}

for path in "" /core /readonly; do
    inspect "lint of the tools at /mcp$path" "$url$path" --method tools/list --strict
done
inspect "lint, initialize era" "$url" --method tools/list --strict --protocol-era legacy
inspect "lint, stateless era" "$url" --method tools/list --strict --protocol-era modern
inspect "a call" "$url" --method tools/call --tool-name query_graph --tool-args-json '{"query":"anything"}'
echo "inspector: $passed passed, $failed failed"
[ "$failed" = 0 ]
