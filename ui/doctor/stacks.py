"""Stacks and flight-recorder dumps of the ranks of a running job on this machine, bounded in time.

py-spy is used where it is installed. Else a process is asked by SIGUSR1, only if its script registers faulthandler and
the kernel says that the signal is caught: by default it kills. Nothing is written, attached to for long, or changed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.hang.stacks import read
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.ui.doctor.processes import PROC, Process, ancestors, pids, process, status

RANK_NAMES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
WORLD_NAMES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
RECORDER_NAMES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
RECORDER_DEFAULT = "/tmp/nccl_trace_rank_"
MOST_RANKS = 64
MOST_RECORD = 32 * 1024 * 1024
MOST_SCRIPT = 256 * 1024
MOST_SCRIPTS = 8
SAMPLES = 2
BETWEEN = 2.0
"""Seconds between two dumps: a rank that stands in the same line in both stands still."""
_CAUGHT = re.compile(r"^SigCgt:\s*([0-9a-f]+)", re.MULTILINE)
_LIBRARY = re.compile("/site-packages/|/lib/python")
_REGISTERS = re.compile(r"\bfaulthandler\.register\(\s*(?:signum\s*=\s*)?(?:signal\.)?SIGUSR1\b")
_ONE_AT_A_TIME = threading.Lock()
"""Ranks may print into one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A process of the job. ``rank`` and ``world`` are what its environment says, and ``local_world`` how many
    are on this machine; ``recorder`` is its dumps' prefix."""

    pid: int
    rank: int | None = None
    world: int | None = None
    local_world: int | None = None
    script: Path | None = None
    recorder: str = RECORDER_DEFAULT
    alive: bool = True

    @property
    def heading(self) -> str:
        number = f"rank {self.rank}" if self.rank is not None else f"Process {self.pid}"
        return f"=== {number}{f' of {self.world}' if self.world else ''}{f', process {self.pid}' if self.pid else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """``files`` are read like pasted ones: stacks, dumps, and the scripts that the stacks name.

    ``unread``: why the stack of a rank is not there, and how to get it.
    """

    files: tuple[Attachment, ...]
    unread: tuple[str, ...] = ()


def find_ranks(root: int) -> tuple[Rank, ...]:
    """The ranks below a process (torchrun, deepspeed, srun), or itself."""
    below = (process(pid) for pid in sorted(pids(of_everybody=True)) if root in (pid, *ancestors(pid)))
    found = [(each.parent, rank) for each in below if each is not None and (rank := _rank(each)) is not None]
    numbers = {rank.pid: rank.rank for _, rank in found}
    # A loader's worker inherits the environment of its rank.
    ranks = [rank for parent, rank in found if numbers.get(parent) != rank.rank]
    return (*sorted(ranks, key=lambda rank: rank.rank or 0), *_absent(ranks))[:MOST_RANKS]


def _absent(ranks: Sequence[Rank]) -> Iterator[Rank]:
    """Ranks that should run on this machine and do not."""
    worlds = {rank.world for rank in ranks}
    if len(worlds) == 1 and worlds == {rank.local_world for rank in ranks}:
        (world,) = worlds
        seen = {rank.rank for rank in ranks}
        yield from (Rank(pid=0, rank=n, world=world, alive=False) for n in range(world or 0) if n not in seen)


def collect(
    ranks: Sequence[Rank], *, seconds: float = 30.0, samples: int = SAMPLES, between: float = BETWEEN
) -> Collected:
    """The stacks of these ranks, in at most about so many seconds."""
    end = time.monotonic() + seconds
    texts: list[str] = []
    unread: dict[str, None] = {}
    with ThreadPoolExecutor(max_workers=8) as pool:
        for number in range(samples):
            if number and time.monotonic() + between > end:
                break
            if number:
                time.sleep(between)
            for text, problem in pool.map(lambda rank: _stack(rank, end), ranks):
                texts.append(text)
                if problem:
                    unread[problem] = None
    stacks = "\n".join(text for text in texts if text)
    files = (Attachment(name="stacks.txt", content=stacks), *_recorded(ranks), *_scripts(stacks))
    return Collected(files=files, unread=tuple(unread))


def _stack(rank: Rank, end: float) -> tuple[str, str]:
    """The stack under its heading, and why there is none."""
    state = status(rank.pid)[:1] if rank.alive else []
    if state in ([], ["Z"], ["X"]):
        return f"{rank.heading}: gone ===\n", ""
    if state in (["T"], ["t"]):
        return f"{rank.heading}: not running, it is stopped ===\n", ""
    left = max(0.5, min(10.0, end - time.monotonic()))
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    text, problem = _spied(spy, rank.pid, left) if spy else ("", "py-spy is not installed (pip install py-spy)")
    if not text and _answers(rank):
        with _ONE_AT_A_TIME:
            text = _signalled(rank.pid, min(left, 3.0))
    if text:
        return f"{rank.heading} ===\n{text}", ""
    return "", f"process {rank.pid}: {problem}; or py-spy dump --pid {rank.pid} as its user or root"


def _spied(spy: str, pid: int, seconds: float) -> tuple[str, str]:
    try:
        done = subprocess.run(
            [spy, "dump", "--full-filenames", "--pid", str(pid)],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"py-spy: {type(error).__name__}"
    return (done.stdout, "") if done.returncode == 0 else ("", f"py-spy: {done.stderr.strip()[:200]}")


def _answers(rank: Rank) -> bool:
    """Whether SIGUSR1 prints a stack there: the script says so, and the signal does not kill.

    That it is caught is not enough: a trainer may save and requeue its job on it.
    """
    if rank.script is None or _REGISTERS.search(_text(rank.script)) is None:
        return False
    caught = _CAUGHT.search(_text(PROC / str(rank.pid) / "status"))
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGUSR1 - 1) & 1)


def _signalled(pid: int, seconds: float) -> str:
    """What faulthandler wrote after the signal, to any file that the process writes."""
    before = {path: path.stat().st_size for path in _written(pid)}
    with suppress(OSError):
        os.kill(pid, signal.SIGUSR1)
    end, last = time.monotonic() + seconds, ""
    while time.monotonic() < end:
        time.sleep(0.1)
        for path, size in before.items():
            text = _from(path, size)
            if "most recent call first" in text and text == last:  # it prints one thread after the other
                return text
            last = text or last
    return last


def _from(path: Path, offset: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(MOST_SCRIPT).decode("utf-8", "replace")
    except OSError:
        return ""


def _written(pid: int) -> Iterator[Path]:
    seen = set()
    with suppress(OSError):
        for link in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                path = link.resolve()
                if path.is_file() and path not in seen and not path.name.endswith((".so", ".py")):
                    seen.add(path)
                    yield path


def _recorded(ranks: Iterable[Rank]) -> Iterator[Attachment]:
    """Flight-recorder dumps that were written since the rank began."""
    for rank in ranks:
        path = Path(f"{rank.recorder}{rank.rank}")
        with suppress(OSError):
            fresh = path.stat().st_mtime >= (PROC / str(rank.pid)).stat().st_mtime - 1
            if rank.rank is not None and fresh and path.is_file() and path.stat().st_size <= MOST_RECORD:
                yield Attachment(name=f"nccl_trace_rank_{rank.rank}", content=path.read_bytes())


def _scripts(stacks: str) -> Iterator[Attachment]:
    """The user's own files that the stacks name: the conditions around a line tell what holds the ranks apart."""
    threads, _, _ = read(Source(name=None, text=stacks, byte_count=len(stacks)))
    names = dict.fromkeys(frame.file for thread in threads for frame in reversed(thread.frames))
    own = [name for name in names if name.startswith("/") and name.endswith(".py") and not _LIBRARY.search(name)]
    for name in own[:MOST_SCRIPTS]:
        text = _text(Path(name))
        if text and len(text) <= MOST_SCRIPT:
            yield Attachment(name=name, content=text)


def _rank(of: Process) -> Rank | None:
    variables, words = of.variables, of.words
    number = _first(variables, RANK_NAMES)
    if number is None or "python" not in Path(words[0]).name:
        return None
    recorder = next((variables[name] for name in RECORDER_NAMES if variables.get(name)), RECORDER_DEFAULT)
    script = next((word for word in words[1:] if word.endswith(".py")), None)
    return Rank(
        pid=of.pid,
        rank=number,
        world=_first(variables, WORLD_NAMES),
        local_world=_first(variables, ("LOCAL_WORLD_SIZE",)),
        script=(of.folder / script) if script is not None else None,
        recorder=recorder,
    )


def _first(variables: Mapping[str, str], names: Iterable[str]) -> int | None:
    return next((int(variables[name]) for name in names if variables.get(name, "").isdigit()), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
