#!/usr/bin/env bash
# usage: [SETS="core lists full"] tests/mcp/conformance.sh URL KEY OUTDIR
# The official MCP conformance suite against a running server; conformance.py says what must pass. URL is the production
# route (.../mcp); the set "full" uses /conformance/mcp of the same server, which `waggle dev --conformance-fixtures` has.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
url=${1:?usage: conformance.sh URL KEY OUTDIR}
key=${2:?usage: conformance.sh URL KEY OUTDIR}
out=${3:?usage: conformance.sh URL KEY OUTDIR}
place=$("$here/prepare.sh")
source "$here/../../scripts/env.sh"
exec python3 "$here/conformance.py" "$place" "$url" "$key" "$out" ${SETS:-core lists full}
