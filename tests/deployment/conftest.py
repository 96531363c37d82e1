"""Builds of the image and of the bundle, which are collected only where the command line names this folder: they need
root, package registries and minutes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainmedic.kb.store import shipped

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these files alone unless they were asked for."""
    base = config.invocation_params.dir
    asked = ((base / argument.split("::")[0]).resolve() for argument in config.args)
    return None if any(path == HERE or HERE in path.parents for path in asked) else True


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory, knowledge_folder: Path) -> Path:
    """The tracked files, and the index that `make wheel` puts into trainmedic-data."""
    folder = tmp_path_factory.mktemp("checkout")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.split("\0"):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    shutil.copytree(shipped.index(), folder / "kb" / "data" / "trainmedic_data" / "index")
    return folder


def run(*command: object, cwd: Path | None = None, without_network: bool = False) -> str:
    """The command's output. Fails with it unless it exits with 0."""
    words = [str(word) for word in command]
    if without_network:
        words = ["unshare", "--net", *words]
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}"
    return done.stdout


PYTHON = Path(sys.executable)
