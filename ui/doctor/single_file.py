"""Make ``doctor.pyz``: doctor as one file that any Python 3.11 runs, with nothing to install.

``python -m trainmedic.ui.doctor.single_file dist/doctor.pyz``. It holds the rules, the known defects, the messages and
the catalogues of options, and packages of pure Python; no index.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipapp
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

import trainmedic
from trainmedic import kb, service, ui

PACKAGES = ("packaging", "pyyaml", "rapidfuzz", "resolvelib")
"""Distributions whose modules of pure Python are enough."""
ROOMS = ("kb", "service", "ui/cli", "ui/doctor", "ui/present")
CODE_ALONE = ("kb/glossary/",)
"""Its texts are for ranking."""
LEFT_OUT = ("kb/data/", "service/api/", "service/llm/", "service/storage/")
TIME = 1_577_836_800
"""When all files were changed, here and where `start` unpacks them: what is compiled is kept for files of that time."""
WARM = """
import sys
sys.path.insert(0, sys.argv[1])
from trainmedic.ui.cli import main
main(["doctor", "--quick", sys.argv[2]])
"""
SAMPLE = {
    "train.sh": "accelerate launch train.py --bf16 True --learning_rate 1e-4\n",
    "pip-list.txt": "torch==2.4.0\ntransformers==4.46.0\n",
    "train.log": "{'loss': 1.0, 'learning_rate': 1e-4}\nTraceback (most recent call last):\nValueError: no\n",
}
START = Path(__file__).with_name("start.py")


def make(target: Path) -> None:
    """Write the archive. Equal contents are unpacked to one folder."""
    with tempfile.TemporaryDirectory() as name:
        folder, digest = Path(name), hashlib.sha256()
        for place, source in sorted([*_ours(), *_theirs()]):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / place)
            digest.update(place.encode() + source.read_bytes())
        _compile(folder)
        text = START.read_text(encoding="utf-8").replace("DIGEST", digest.hexdigest()[:16])
        (folder / "__main__.py").write_text(text, encoding="utf-8")
        target.parent.mkdir(parents=True, exist_ok=True)
        zipapp.create_archive(folder, target, interpreter="/usr/bin/env python3", compressed=True)


def _compile(folder: Path) -> None:
    """Let doctor run once there, so that the archive holds the modules and pages that it needs as it compiles them: for
    this release of Python; others compile them at their first start."""
    for path in folder.rglob("*"):
        os.utime(path, (TIME, TIME))
    with tempfile.TemporaryDirectory() as run:
        for name, text in SAMPLE.items():
            Path(run, name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-I", "-c", WARM, str(folder), run]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _ours() -> Iterator[tuple[str, Path]]:
    """Where each of our files goes, and the file."""
    tops = {"kb": Path(kb.__path__[0]), "service": Path(service.__path__[0]), "ui": Path(ui.__path__[0])}
    yield "trainmedic/__init__.py", Path(str(trainmedic.__file__))
    yield from ((f"trainmedic/ui/{path.name}", path) for path in tops["ui"].glob("*.py"))
    for room in ROOMS:
        top, _, inner = room.partition("/")
        for path in (tops[top] / inner).rglob("*"):
            name = f"{top}/{path.relative_to(tops[top]).as_posix()}"
            is_page = path.suffix != ".py" and name.startswith(CODE_ALONE)
            left_out = "__pycache__" in path.parts or is_page or name.startswith(LEFT_OUT)
            if path.is_file() and not left_out:
                yield f"trainmedic/{name}", path


def _theirs() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for file in files(package) or ():
            if file.suffix == ".py" and ".." not in file.parts and "__pyinstaller" not in file.parts:
                yield file.as_posix(), Path(str(file.locate()))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
