"""The processes of a run as Linux shows them in /proc. Nothing is signalled or attached to."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.parse.text.kinds import starts_command

PROC = Path("/proc")
_MOST_BYTES = 1 << 20
_MOST_PARENTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """``folder`` is its working directory; ``variables`` are empty for a process of someone else."""

    pid: int
    parent: int
    words: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str]

    @property
    def command(self) -> str:
        """The command as it was typed: a program that Python runs (``torchrun``) without the interpreter before it."""
        words = self.words
        if len(words) > 1 and _is_python(words[0]) and not words[1].startswith("-") and not words[1].endswith(".py"):
            words = words[1:]
        return shlex.join(words)

    @property
    def interpreter(self) -> Path | None:
        """The Python that it runs, under the name that its environment has: the link in /proc leads out of it."""
        name = self.words[0] if self.words and _is_python(self.words[0]) else "python"
        places = [self.folder] if "/" in name else self.variables.get("PATH", "").split(os.pathsep)
        found = (Path(place) / name for place in places if place)
        return next((path for path in found if path.exists()), None)

    def outputs(self) -> tuple[Path, ...]:
        """The files that it prints to."""
        found = []
        for number in (1, 2):
            with suppress(OSError):
                found.append(Path(os.readlink(PROC / str(self.pid) / "fd" / str(number))))
        return tuple(dict.fromkeys(path for path in found if path.is_file()))


def _is_python(word: str) -> bool:
    return word.rpartition("/")[2].startswith("python")


def process(pid: int) -> Process | None:
    """The process; None if there is none, or none with a command."""
    place = PROC / str(pid)
    try:
        words = _fields(place / "cmdline")
        parent = int(status(pid)[1])
    except (OSError, ValueError, IndexError):
        return None
    if not words:
        return None
    folder, variables = Path("/"), {}
    with suppress(OSError):
        folder = Path(os.readlink(place / "cwd"))
        variables = dict(field.split("=", 1) for field in _fields(place / "environ") if "=" in field)
    return Process(pid=pid, parent=parent, words=tuple(words), folder=folder, variables=variables)


def status(pid: int) -> list[str]:
    """Fields of ``/proc/PID/stat`` after the name: the letter of the state, the parent; none if the process is gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name in parentheses may hold anything


def ancestors(pid: int) -> Iterator[int]:
    """The processes above one, the nearest first."""
    while len(told := status(pid)) > 1 and (pid := int(told[1])) > 1:
        yield pid


def _fields(path: Path) -> list[str]:
    with path.open("rb") as stream:
        content = stream.read(_MOST_BYTES)
    return [field.decode("utf-8", "replace") for field in content.rstrip(b"\0").split(b"\0") if field]


def launcher_of(started: Process) -> Process:
    """The outermost process above it that starts the same program, as `torchrun` does; itself without one."""
    launcher, current, script = started, started, _script(started.words)
    for _ in range(_MOST_PARENTS):
        above = process(current.parent)
        if above is None or above.pid <= 1:
            break
        current = above
        if script and script in above.words and starts_command(above.command):
            launcher = above
    return launcher


def _script(words: Sequence[str]) -> str:
    """The script or the module that a command runs."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "-m" or word.endswith(".py"):
            return following if word == "-m" else word
    return ""


def running_in(folder: Path) -> Process | None:
    """The launcher of a training program that works in a folder or names it; the one that was started last."""
    ours = {os.getpid(), *ancestors(os.getpid())}
    for pid in sorted(pids(), reverse=True):
        found = process(pid) if pid not in ours else None
        if found is None or not starts_command(found.command):
            continue
        if found.folder == folder or any(_names(word, folder, found.folder) for word in found.words[1:]):
            return launcher_of(found)
    return None


def _names(word: str, folder: Path, base: Path) -> bool:
    value = word.rpartition("=")[2]
    return "/" in f"{value}/" and len(value) < 4096 and os.path.normpath(base / value) == str(folder)


def pids(*, of_everybody: bool = False) -> Iterator[int]:
    with suppress(OSError):
        for entry in os.scandir(PROC):
            with suppress(OSError):
                if entry.name.isdigit() and (of_everybody or entry.stat().st_uid == os.getuid()):
                    yield int(entry.name)
