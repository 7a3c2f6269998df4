#!/usr/bin/env bash
# usage: scripts/node22.sh
# Makes Node 22.19 or newer available, and prints the path of its directory. A Node of the system is used when it is new
# enough; otherwise npm fetches one into the cache, where env.sh puts it into PATH.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"

new_enough() {
    local version
    version=$("$1" --version 2> /dev/null) || return 1
    [ "$(printf '%s\n22.19.0\n' "${version#v}" | sort -V | head -n 1)" = 22.19.0 ]
}

here=$WAGGLE_CACHE/node22
if command -v node > /dev/null && new_enough node; then
    dirname "$(command -v node)"
    exit 0
fi
if ! command -v npm > /dev/null; then
    say "Node 22.19 or newer is needed for the client tests, and there is no npm to fetch it with"
    exit 1
fi
mkdir -p "$here"
if command -v flock > /dev/null; then
    exec 9> "$here.lock"
    flock 9
fi
if ! new_enough "$here/node_modules/node/bin/node"; then
    say "fetching Node 22 into $here"
    npm install --prefix "$here" --no-save --no-audit --no-fund --loglevel error node@22 > /dev/null 9>&-
fi
new_enough "$here/node_modules/node/bin/node" || {
    say "the Node that npm fetched into $here does not run"
    exit 1
}
echo "$here/node_modules/node/bin"
