#!/bin/sh
# Makes an archive that installs trainmedic without internet, on machines like this one (system, processor, Python).
#   make_bundle.sh PYTHON FOLDER     FOLDER holds the wheels of `make wheel`; the archive is written there
set -eu
python=$1
folder=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/../../.." && pwd)
extras=serve,slack,mcp,notify,ingest,postgres,otel
wheel=$(ls -t "$folder"/trainmedic-*-py3-none-any.whl | head -n 1)
version=$(basename "$wheel" | cut -d- -f2)
data=$folder/trainmedic_data-$version-py3-none-any.whl
platform=$("$python" -c 'import platform, sys; print(f"{platform.system().lower()}-{platform.machine()}-cp{sys.version_info[0]}{sys.version_info[1]}")')
name=trainmedic-$version-$platform
bundle=$folder/$name
rm -rf "$bundle"
mkdir -p "$bundle/wheels"
# Our own wheels hold the knowledge, its index and the embedder's model. pip installs itself too: venv may lack it.
"$python" -m pip --disable-pip-version-check wheel --quiet --wheel-dir "$bundle/wheels" \
  --constraint "$root/constraints.txt" "$wheel[$extras]" "$data" pip
cp "$root/docs/deploy/airgap/install.sh" "$root/constraints.txt" "$root/LICENSE" "$bundle/"
cp "$root/docs/run/deployment.md" "$bundle/README.md"
cp -R "$root/docs/deploy" "$bundle/deploy"
printf '%s\n' "$platform" > "$bundle/platform"
printf '%s\n' "$extras" > "$bundle/extras"
(cd "$bundle" && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum > SHA256SUMS)
tar -C "$folder" -czf "$folder/$name.tar.gz" "$name"
rm -rf "$bundle"
(cd "$folder" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
echo "$folder/$name.tar.gz"
