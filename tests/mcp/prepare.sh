#!/usr/bin/env bash
# usage: tests/mcp/prepare.sh
# Installs the client libraries, the conformance suite and the inspector into the cache, in the versions that our lock
# files name, lays our programs beside them and prints the directory. Does nothing when all is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../scripts/env.sh"
source "$here/../../scripts/steps.sh"

node_dir=$("$WAGGLE_ROOT/scripts/node22.sh")
export PATH="$node_dir:$PATH"
pins=$(cat "$here"/package-lock.json "$here"/requirements-py*.txt "$here"/inspector/package-lock.json | waggle_sha256 | cut -c1-12)
place=$WAGGLE_CACHE/mcp/$pins
mkdir -p "$place/inspector"
if command -v flock > /dev/null; then
    exec 9> "$place.lock"
    flock 9
fi

# Prebuilt packages only: no install script runs. `npm ci` wants every optional package of every platform to exist in
# the registry at hand; where one is missing, `npm install` takes the same versions from the same lock file.
npm_install() { # npm_install DIRECTORY NAME
    [ -e "$1/.installed" ] && return
    say "installing $2"
    (
        cd "$1"
        npm ci --ignore-scripts --no-audit --no-fund --loglevel silent > install.log 2>&1 9>&- \
            || npm install --ignore-scripts --no-audit --no-fund --no-save --loglevel error > install.log 2>&1 9>&-
    ) || {
        say "npm could not install $2:"
        tail -n 20 "$1/install.log" >&2
        exit 1
    }
    touch "$1/.installed"
}
venv() { # venv NAME
    [ -e "$place/$1/.installed" ] && return
    say "installing the Python client $1"
    python3 -m venv --clear "$place/$1"
    "$place/$1/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements-$1.txt" 9>&-
    touch "$place/$1/.installed"
}

cp "$here/package.json" "$here/package-lock.json" "$place/"
cp "$here/inspector/package.json" "$here/inspector/package-lock.json" "$place/inspector/"
npm_install "$place" "the TypeScript clients, the Pi client and the conformance suite"
npm_install "$place/inspector" "the MCP inspector"
venv py1
venv py2
# A JavaScript module finds its libraries beside itself, so the programs are copied to where those are.
cp "$here"/clients/*.mjs "$here"/clients/*.py "$here"/auth_proxy.mjs "$place/"
echo "$place"
