"""Whose run it is: a folder, a process or a job of Slurm."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.run_folder import output_folders
from trainmedic.ui.doctor.processes import Process, launcher_of, process, running_in

PROGRAM_S = 2.0
"""The longest that another program is waited for."""
_FIELD = regex(r"(?:^|\s)(?P<name>WorkDir|StdOut|StdErr|Command)=(?P<value>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A run. ``words`` say of what kind it is (``folder``, ``process`` or ``job``) and its name, ``beside`` are further
    folders that it writes to. ``files`` belong to it wherever they lie: the scheduler named them."""

    folder: Path
    words: tuple[str, str]
    beside: tuple[Path, ...] = ()
    process: Process | None = None
    files: tuple[Path, ...] = ()


def target_of(word: str) -> Target:
    """The run that a word names: a folder, the number of a process or, after ``job:`` or where no process has it, of a
    job. Raises `NotFound` and `InvalidRequest`."""
    path = Path(word)
    if path.is_dir():
        folder = path.resolve()
        return Target(folder=folder, words=("folder", str(folder)), process=running_in(folder))
    number = word.removeprefix("job:")
    if path.is_file():
        raise InvalidRequest(f"{word} is a file", hint="name the folder of the run; trainmedic check reads files")
    if not number.isdecimal():
        raise NotFound(
            f"{word} is not a folder", hint="name a folder, a process by its number, or a Slurm job as job:NUMBER"
        )
    found = process(int(number)) if number == word else None
    return _of_process(found) if found is not None else _of_job(number)


def _of_process(found: Process) -> Target:
    launcher = launcher_of(found)
    named = [place for name in output_folders(launcher.words) if (place := launcher.folder / name).is_dir()]
    folder, *beside = [place.resolve() for place in named or [launcher.folder]]
    return Target(folder=folder, beside=tuple(beside), words=("process", str(found.pid)), process=launcher)


def _of_job(number: str) -> Target:
    told = said_by(("scontrol", "show", "job", number))
    fields = job_fields(told)
    if "WorkDir" not in fields:
        raise NotFound(
            f"there is neither a process nor a job {number} here", hint="scontrol knows jobs until some minutes after"
        )
    files = tuple(Path(fields[name]) for name in ("Command", "StdOut", "StdErr") if name in fields)
    files = tuple(dict.fromkeys(file for file in files if file.is_file()))
    return Target(folder=Path(fields["WorkDir"]), words=("job", number), files=files)


def job_fields(told: str) -> Mapping[str, str]:
    """The files of a job by ``scontrol show job``."""
    return {found["name"]: found["value"] for found in _FIELD.finditer(told)}


def said_by(command: Sequence[str]) -> str:
    """The output of a program of the machine; empty if it is not there, fails or takes too long."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        ended = subprocess.run([program, *command[1:]], capture_output=True, timeout=PROGRAM_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ended.stdout.decode("utf-8", "replace") if ended.returncode == os.EX_OK else ""
