#!/usr/bin/env bash
# usage: tests/mcp/clients.sh URL KEY
# Real MCP clients against a running server; clients.py says what is checked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
url=${1:?usage: clients.sh URL KEY}
key=${2:?usage: clients.sh URL KEY}
place=$("$here/prepare.sh")
source "$here/../../scripts/env.sh"
exec python3 "$here/clients.py" "$place" "$url" "$key"
