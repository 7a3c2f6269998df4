# shellcheck shell=bash
# Settings of every build. Source it; it changes nothing but environment variables:
#
#     source scripts/env.sh && cargo build
#
# All our commands build with the same settings, because a cargo that sees other flags rebuilds everything.

WAGGLE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export WAGGLE_ROOT
export WAGGLE_CACHE=${WAGGLE_CACHE:-$HOME/.cache/waggle}
# Outside of the work tree: a second checkout, and the next fresh clone, then start with what is built already.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$WAGGLE_CACHE/target}

# How RocksDB is compiled; rocksdb.sh uses the same words, and they name its directory.
WAGGLE_ROCKSDB_FEATURES="bindgen-runtime lz4 zstd"
WAGGLE_ROCKSDB_OPT_LEVEL=2
case $(uname -m) in
    # CRC32C in hardware: every block and every log record that RocksDB reads or writes is summed.
    x86_64) WAGGLE_ROCKSDB_CXXFLAGS=${WAGGLE_ROCKSDB_CXXFLAGS:--msse4.2 -mpclmul} ;;
    *) WAGGLE_ROCKSDB_CXXFLAGS=${WAGGLE_ROCKSDB_CXXFLAGS:-} ;;
esac

# version of librocksdb-sys in our lock file, such as 0.19.0+11.8.1
waggle_rocksdb_version() {
    awk '/^name = "librocksdb-sys"$/ { getline; gsub(/version = |"/, ""); print; exit }' "$WAGGLE_ROOT/Cargo.lock"
}

# where the compiled library belongs: one directory for each version and set of flags
waggle_rocksdb_dir() {
    local version flags
    version=$(waggle_rocksdb_version)
    flags="$(uname -sm) $WAGGLE_ROCKSDB_FEATURES -O$WAGGLE_ROCKSDB_OPT_LEVEL $WAGGLE_ROCKSDB_CXXFLAGS"
    echo "$WAGGLE_CACHE/rocksdb/${version//+/_}-$(printf '%s' "$flags" | waggle_sha256 | cut -c1-12)"
}

waggle_sha256() {
    if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi
}

# Only when it is there: cargo given an empty directory would fail at the very end, in the linker.
if [ -z "${ROCKSDB_LIB_DIR:-}" ] && [ -f "$(waggle_rocksdb_dir)/librocksdb.a" ]; then
    ROCKSDB_LIB_DIR=$(waggle_rocksdb_dir)
    export ROCKSDB_LIB_DIR ROCKSDB_STATIC=1
fi

# bindgen looks for libclang in few places; Debian puts it into one directory for each version.
if [ -z "${LIBCLANG_PATH:-}" ]; then
    for waggle_lib in $(ls -d /usr/lib/llvm-*/lib 2> /dev/null | sort -rV); do
        if compgen -G "$waggle_lib/libclang*.so*" > /dev/null; then
            export LIBCLANG_PATH=$waggle_lib
            break
        fi
    done
    unset waggle_lib
fi

# The linker runs once for each test binary: mold makes that a second instead of ten.
if [ "$(uname -s)" = Linux ] && command -v mold > /dev/null; then
    case $(uname -m) in
        x86_64) export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=-fuse-ld=mold" ;;
        aarch64) export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=-fuse-ld=mold" ;;
    esac
fi

# A Node that node22.sh fetched goes before an older one of the system.
if [ -x "$WAGGLE_CACHE/node22/node_modules/node/bin/node" ]; then
    case ":$PATH:" in
        *":$WAGGLE_CACHE/node22/node_modules/node/bin:"*) ;;
        *) export PATH="$WAGGLE_CACHE/node22/node_modules/node/bin:$PATH" ;;
    esac
fi
