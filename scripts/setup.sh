#!/usr/bin/env bash
# usage: scripts/setup.sh [--tests]
# Finds out what a build needs and is missing, and installs it where it may (Debian and Ubuntu, as root or with a sudo
# that asks no password). Elsewhere it prints what to install and ends with 1. With --tests: what the tests need, too.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"

with_tests=
[ "${1:-}" = --tests ] && with_tests=1
packages=()

need() { # need COMMAND PACKAGE
    command -v "$1" > /dev/null || packages+=("$2")
}

if ! command -v cargo > /dev/null; then
    say "Rust is missing. Install it with rustup (https://rustup.rs), then run this again."
    exit 1
fi
wanted=$(awk -F'"' '/^rust-version/ { print $2; exit }' "$WAGGLE_ROOT/Cargo.toml")
found=$(rustc --version | awk '{ print $2 }')
if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
    say "Rust $found is too old: $wanted or newer is needed. Run: rustup update stable"
    exit 1
fi

# A C++ compiler for RocksDB, libclang for its bindings, protoc for our messages.
need g++ g++
need make make
need pkg-config pkg-config
need protoc protobuf-compiler
[ -n "${LIBCLANG_PATH:-}" ] || [ "$(uname -s)" = Darwin ] || packages+=(libclang-dev)
[ "$(uname -s)" = Linux ] && need mold mold
if [ -n "$with_tests" ]; then
    need python3 python3
    python3 -c 'import venv, ensurepip' 2> /dev/null || packages+=(python3-venv)
    need npm npm
fi

may_install() { [ "$(id -u)" = 0 ] || sudo -n true 2> /dev/null; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

if [ ${#packages[@]} -gt 0 ]; then
    if command -v apt-get > /dev/null && may_install; then
        say "installing with apt: ${packages[*]}"
        export DEBIAN_FRONTEND=noninteractive
        as_root apt-get update -qq
        as_root apt-get install -y -qq --no-install-recommends "${packages[@]}" > /dev/null
    else
        say "These are missing: ${packages[*]}"
        if command -v apt-get > /dev/null; then
            say "Install them, then run this again:  sudo apt-get install ${packages[*]}"
        elif [ "$(uname -s)" = Darwin ]; then
            say "Install them, then run this again:  xcode-select --install; brew install llvm protobuf pkg-config node python"
        else
            say "Those are the names that Debian uses. Install their counterparts, then run this again."
        fi
        exit 1
    fi
fi

if [ -n "$with_tests" ]; then
    for part in rustfmt clippy; do
        cargo "${part/rustfmt/fmt}" --version > /dev/null 2>&1 && continue
        say "installing $part"
        rustup component add "$part" || {
            say "$part is missing. Run: rustup component add $part"
            exit 1
        }
    done
    if ! cargo nextest --version > /dev/null 2>&1; then
        say "cargo-nextest is missing; building it takes some minutes, once (WAGGLE_NEXTEST=0 leaves it out)"
        if [ "${WAGGLE_NEXTEST:-1}" = 0 ] || ! timeout 1200 cargo install --locked --quiet cargo-nextest; then
            say "no cargo-nextest: the tests run under cargo test instead"
        fi
    fi
fi
say "set-up: everything that is needed is here (Rust $found)"
