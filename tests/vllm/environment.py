"""The environment that the real vLLM server runs in: made once for each lock, in the user's cache folder.

    python -m tests.vllm.environment      makes it where it is not there yet, and prints its Python

It takes about 2.5 GB. Those of earlier locks may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import venv
from hashlib import blake2b
from pathlib import Path

LOCK = Path(__file__).with_name("requirements.lock")
READY = "ready"
"""A file in the environment: it is complete."""
CHECK = "import torch, xgrammar; assert torch.version.cuda is None, 'a CUDA build of torch'; import vllm._C"


def cache() -> Path:
    """Our folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trainmedic"


def folder() -> Path:
    """Where the environment of this lock and this Python is, or will be."""
    version = ".".join(map(str, sys.version_info[:2]))
    digest = blake2b(LOCK.read_bytes() + version.encode(), digest_size=6).hexdigest()
    return cache() / f"vllm-{digest}"


def python() -> Path:
    """The Python of the environment, which is made where it is not complete. Of several callers at once, one makes it.

    Raises `subprocess.CalledProcessError` where that fails.
    """
    place = folder()
    executable = place / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (place / READY).exists():
            sys.stderr.write(f"installing vLLM for CPU into {place} (once)\n")
            _make(place, executable)
            (place / READY).touch()
    return executable


def _make(place: Path, executable: Path) -> None:
    venv.create(place, clear=True, with_pip=True)
    # Without compiled modules every start of the server takes twice as long.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    pip = [str(executable), "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--no-deps"]
    # Standard output is for the path alone.
    subprocess.run([*pip, "--requirement", str(LOCK)], check=True, env=environment, stdout=sys.stderr)
    subprocess.run([str(executable), "-c", CHECK], check=True, env=environment, stdout=sys.stderr)


if __name__ == "__main__":
    sys.stdout.write(f"{python()}\n")
