#!/bin/sh
# Installs this bundle, without internet.
#   sh install.sh FOLDER [PYTHON]     for example /opt/trainmedic python3.11
set -eu
[ $# -ge 1 ] || { echo "usage: sh install.sh FOLDER [PYTHON]" >&2; exit 2; }
# Before the folder changes.
case $1 in /*) target=$1 ;; *) target=$PWD/$1 ;; esac
python=${2:-python3}
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
cd "$(dirname "$0")"
sha256sum --quiet --check SHA256SUMS || { echo "the bundle is damaged: unpack it again" >&2; exit 1; }
here=$("$python" -c 'import platform, sys; print(f"{platform.system().lower()}-{platform.machine()}-cp{sys.version_info[0]}{sys.version_info[1]}")')
[ "$here" = "$(cat platform)" ] || { echo "this bundle is for $(cat platform), this is $here" >&2; exit 1; }
# Without pip: on Debian it is a package of its own. The bundle's runs from its wheel.
"$python" -m venv --clear --without-pip "$target"
wheel=$(ls wheels/trainmedic-*.whl)
pip=$(ls wheels/pip-*.whl)
# Isolated from the caller: a PYTHONPATH with another trainmedic would count as installed, PIP_TARGET be obeyed.
"$target/bin/python" -I "$pip/pip" --isolated --disable-pip-version-check install --quiet --no-index --find-links wheels \
  --constraint constraints.txt "$wheel[$(cat extras)]"
"$target/bin/python" -I "$target/bin/trainmedic" index verify >/dev/null
echo "installed: $target/bin/trainmedic"
