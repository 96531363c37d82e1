"""The image, built from the Dockerfile by buildah on a base image that Debian's packages make, and run.

It runs as docker runs it: as its user, without capabilities and network, with a read-only root file system. So does
its health check.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deployment.conftest import run

TOOLS = ("buildah", "debootstrap", "unshare", "curl")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS), reason=f"needs root, {', '.join(TOOLS)}"
)
BASE = "docker.io/library/python:3.11-slim-bookworm"
IMAGE = "localhost/trainmedic-test"
PORT = 8765
Buildah = Callable[..., str]
INSIDE = """
set -eu
ip link set lo up
mount --bind {root} {root} && mount -o remount,ro,bind {root}
mount --bind {volume} {root}/data
mount -t tmpfs tmpfs {root}/tmp && mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc
inside() {{ exec env -i {environment} HOME=/data TRAINMEDIC_PORT={port} $given /usr/sbin/chroot {root} \
  setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  env --chdir=/data "$@"; }}
given=
(inside {command}) > {log}/refused 2>&1 && exit 1 || [ $? = 2 ]
(inside {check}) > /dev/null 2>&1 && exit 1
(inside touch /opt/trainmedic/x) > {log}/written 2>&1 && exit 1
given="TRAINMEDIC_API_KEYS=k"
(inside {command}) > {log}/served 2>&1 & process=$!
url=http://127.0.0.1:{port}
for _ in $(seq 100); do sleep .3; curl -sf $url/livez > /dev/null && break; done
curl -sf $url/readyz > {log}/readyz
(inside {check})
curl -s -o /dev/null -w '%{{http_code}}' $url/v1/cases > {log}/without-key
curl -sf $url/v1/ask -H 'Authorization: Bearer k' -H 'content-type: application/json' \
  -d '{{"question": "loss is nan"}}' > {log}/answer
grep -E '^(Uid|CapEff|NoNewPrivs):' /proc/$process/status > {log}/status
# The pages load after the API listens.
curl -sf --retry 60 --retry-delay 1 $url/ -H 'Authorization: Bearer k' -H 'Accept: text/html' -o /dev/null
kill -TERM $process
wait $process
"""


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Buildah:
    """Buildah with a storage of its own: the base image bears the name of another one."""
    storage = tmp_path_factory.mktemp("storage")

    def call(*words: object, cwd: Path | None = None) -> str:
        return run("buildah", "--root", storage / "root", "--runroot", storage / "run", *words, cwd=cwd).strip()

    return call


@pytest.fixture(scope="module")
def image(buildah: Buildah, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the image. Packages come from where this machine's pip takes them."""
    base = tmp_path_factory.mktemp("base")
    run("debootstrap", "--variant=minbase", "--include=ca-certificates,python3,python3-venv", "bookworm", base)
    (base / "usr/local/bin/python").symlink_to("/usr/bin/python3.11")
    container = buildah("from", "scratch")
    buildah("copy", "--quiet", container, base, "/")
    buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", container)
    buildah("commit", "--quiet", container, BASE)
    buildah("rm", container)
    shutil.rmtree(base)
    certificates = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    words = run("python3", "-m", "pip", "config", "list").replace("'", " ").replace("=", " ").split()
    # The pages of an index in a folder link to files beside it.
    places = [str(Path(word.removeprefix("file://")).parent) for word in words if word.startswith("file:///")]
    places += [word for word in words if word.startswith("/")]
    places += ["/etc/pip.conf", str(Path.home() / ".config/pip/pip.conf"), certificates]
    mounts = [f"--volume={place}:{place}:ro" for place in dict.fromkeys(places) if Path(place).exists()]
    # In docker's own format, which alone has the health check.
    options = [
        "--format=docker",
        "--isolation=chroot",
        "--pull-never",
        f"--env=PIP_CERT={certificates}",
        "--layers=false",
    ]
    buildah("bud", *options, *mounts, "--tag", IMAGE, "--file", "Dockerfile", ".", cwd=checkout)
    yield IMAGE
    buildah("rmi", "--force", IMAGE, BASE)


def test_the_image_runs_without_root_network_and_a_writable_root(buildah: Buildah, image: str, tmp_path: Path) -> None:
    container = buildah("from", image)
    try:
        root = Path(buildah("mount", container).strip())
        config = json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]
        kind, *check = config["Healthcheck"]["Test"]
        assert kind == "CMD"
        volume, log = tmp_path / "volume", tmp_path / "log"
        log.mkdir()
        shutil.copytree(root / "data", volume)
        os.chown(volume, 10001, 10001)
        text = INSIDE.format(
            root=root,
            volume=volume,
            log=log,
            environment=shlex.join(config["Env"]),
            command=shlex.join(config["Cmd"]),
            check=shlex.join(check),
            port=PORT,
        )
        script = tmp_path / "inside.sh"
        script.write_text(text, encoding="utf-8")
        isolated = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "bash", str(script)]
        done = subprocess.run(isolated, capture_output=True, text=True, check=False, timeout=180)
        told = {path.name: path.read_text(encoding="utf-8") for path in log.iterdir()}
    finally:
        buildah("rm", container)
    assert done.returncode == 0, (done.stderr, told)
    assert config["User"] == "10001:10001"
    assert "refusing to listen" in told["refused"]
    assert "Read-only file system" in told["written"]
    assert '"status": "ok"' in told["readyz"]
    assert told["without-key"] == "401"
    assert '"verdict"' in told["answer"]
    assert told["status"].split() == ["Uid:", *["10001"] * 4, "CapEff:", "0" * 16, "NoNewPrivs:", "1"]
    assert "ERROR" not in told["served"]
    # Whatever else it writes would be lost, or refused, in the container.
    assert {path.name.partition("-")[0] for path in volume.iterdir()} == {"history.sqlite3"}
