"""The command line's input: files, the question, the language."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.text.condense import ROOM, bounded
from trainmedic.kb.parse.text.intake import decode
from trainmedic.ui.plain_settings import setting

if TYPE_CHECKING:
    from trainmedic.kb.sources.derived import Derived
    from trainmedic.kb.sources.sources import Sources

MAX_BYTES = 64 * 1024 * 1024
"""Bytes up to which a file is kept as it is until it is parsed."""
PIECE = 1024 * 1024
MOST_FILES = 100
WEIGHTS = frozenset((".bin", ".safetensors", ".pt", ".pth", ".ckpt", ".gguf", ".distcp", ".npz", ".arrow", ".parquet"))
"""Suffixes of the files of a run's folder that are not read: weights, optimizer states and data."""
CONFIGS = frozenset({".sh", ".bash", ".yaml", ".yml", ".json", ".toml", ".ini", ".py", ".slurm", ".sbatch"})
MAX_CONFIG = 1 << 20
"""The largest file, in bytes, that counts as a configuration."""
STDIN = "-"
STDIN_NAME = "stdin"


class Unreadable(TrainmedicError):
    code = "unreadable"
    kind = "unavailable"


def attachments(names: Sequence[str]) -> tuple[Attachment, ...]:
    """The named files, ``-`` being standard input. Raises `Unreadable`."""
    return tuple(map(_attachment, names))


def _attachment(name: str) -> Attachment:
    read, left_out = _read(name)
    return Attachment(name=STDIN_NAME if name == STDIN else name, content=read, left_out=left_out)


def run_files(name: str) -> tuple[str, ...]:
    """A file itself, or the files below a folder except for weights and data. Raises `Unreadable`."""
    folder = Path(name)
    if name == STDIN or not folder.is_dir():
        return (name,)
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix.lower() not in WEIGHTS
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if len(paths) > MOST_FILES:
        raise Unreadable(f"{name} has {len(paths)} files, at most {MOST_FILES} are read; name the files of one run")
    if not paths:
        raise Unreadable(f"{name} has no files")
    return tuple(map(str, paths))


def files_of_command(words: Sequence[str], folder: Path = Path()) -> tuple[str, ...]:
    """The files in a command, given in ``folder``, that look like its configuration."""
    paths = []
    for word in words:
        path = folder / (word.partition("=")[2] if word.startswith("-") and "=" in word else word)
        with suppress(OSError, ValueError):
            if path.suffix.lower() in CONFIGS and path.is_file() and path.stat().st_size <= MAX_CONFIG:
                paths.append(str(path))
    return tuple(dict.fromkeys(paths))


def content(name: str) -> bytes:
    """The bytes of one file, of a long one without the lines that matter least. Raises `Unreadable`."""
    return _read(name)[0]


def _read(name: str) -> tuple[bytes, int]:
    """The bytes of one file, and how many lines of a long one were left blank. Raises `Unreadable`."""
    try:
        if name == STDIN:
            return _bounded(sys.stdin.buffer)
        if Path(name).is_dir():
            raise Unreadable(f"{name} is a folder, not a file")
        with Path(name).open("rb") as stream:
            return _bounded(stream)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _bounded(stream: BinaryIO) -> tuple[bytes, int]:
    return bounded(iter(lambda: stream.read(PIECE), b""), MAX_BYTES, ROOM)


def question(argument: str) -> str:
    """The question, read from standard input if it is ``-``. Raises `Unreadable`."""
    if argument != STDIN:
        return argument
    decoded = decode(content(STDIN))
    if decoded is None:
        raise Unreadable("the question on standard input is not text")
    return decoded[0]


def key_of(options: argparse.Namespace) -> str | None:
    """The key in the file named by ``--key``, if there is a ``--server`` to send it to. Raises `Unreadable`."""
    if not options.server or not options.key:
        return None
    return content(options.key).decode("utf-8", "replace").strip()


def write(name: str, data: bytes) -> None:
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise Unreadable(f"{name} cannot be written: {error.strerror}") from error


def language_of(choice: str) -> Literal["en", "zh"]:
    """The chosen language; for ``auto`` that of the terminal."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LANG", "")
    code = locale if choice == "auto" else choice
    return "zh" if code.lower().startswith("zh") else "en"


def folders_of(names: Sequence[str]) -> tuple[Path, ...]:
    """The named folders of pages, and those of the setting ``kb_paths``, read without the packages of a service."""
    configured = setting("kb_paths")
    return tuple(Path(part) for part in (*names, *configured.split(os.pathsep)) if part)


def sources() -> Sources:
    """The source of releases; loaded on demand, which takes as long as a check."""
    from trainmedic.ui.releases import sources_here

    return sources_here()


@cache
def derived() -> Derived:
    """Tables derived from the releases at hand."""
    from trainmedic.kb.sources.derived import Derived

    return Derived(sources())


def read_releases() -> None:
    """Let this command read the releases that a run names and no catalogue has, as the settings ``sources…`` allow."""
    from trainmedic.kb.error_messages import index
    from trainmedic.kb.frameworks import tables

    tables.read_with(
        lambda known, version: derived().catalogue(known, version),
        lambda known, version, key: derived().help(known, version, key),
    )
    index.read_with(lambda package, version, frames: derived().messages(package, version, frames))


def use_colour() -> bool:
    """Whether standard output is a terminal whose user wants colour."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
