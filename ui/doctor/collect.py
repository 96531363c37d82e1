"""Collectors for a run: its command, configuration, logs, versions and devices. Each source is a collector."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from trainmedic.kb.errors import NotFound
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse import run_folder
from trainmedic.kb.parse.text import archives
from trainmedic.kb.parse.text.intake import decode
from trainmedic.kb.parse.text.kinds import has_command
from trainmedic.kb.parse.text.opening import opened
from trainmedic.kb.sources.installed import distributions, site_packages
from trainmedic.ui.cli._input import files_of_command
from trainmedic.ui.doctor import stacks
from trainmedic.ui.doctor.processes import PROC
from trainmedic.ui.doctor.reading import Reading
from trainmedic.ui.doctor.target import Target, said_by

SECONDS = 5.0
LARGEST_HISTORY = 4 * 1024 * 1024
"""Bytes of a tracker's binary file, which cannot be cut."""
_TAIL = 64 * 1024
_TELL_OF_TRAINING = frozenset({"torch", "jax"})
_ENVIRONMENTS = (".venv", "venv", "env")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Something that was read. ``role`` is one of the roles of a folder's files, or ``command``, ``installed`` and
    ``devices``; ``note`` is the name of a message about how it was read, ``value`` what that message says."""

    role: str
    attachment: Attachment
    note: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """All that was found of a run. ``unread`` were there and could not be told; ``missing`` kinds were not found."""

    target: Target
    found: tuple[Found, ...]
    unread: tuple[str, ...]
    missing: tuple[str, ...]
    links: int
    cut_short: bool

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return tuple(found.attachment for found in self.found)

    @property
    def of_a_run(self) -> bool:
        """Whether any of it is of the run, rather than of the machine."""
        return any(found.role not in ("installed", "devices") for found in self.found)


Collector = Callable[[Target, Reading], Iterable[Found]]


def of_process(target: Target, reading: Reading) -> Iterator[Found]:
    """The command of the launcher with the variables that training reads, the files that it names, its output."""
    if (launcher := target.process) is None:
        return
    shown = run_folder.shown_environment(launcher.variables)
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in shown.items())
    name = f"command-of-process-{launcher.pid}.sh"
    yield Found(role="command", attachment=Attachment(name=name, content=f"{exports}{launcher.command}\n"))
    for file in files_of_command(launcher.words, launcher.folder):
        yield from _file("config", Path(file), _named(Path(file), target), reading)
    for path in launcher.outputs():
        yield from _file("log", path, _named(path, target), reading)


def of_job(target: Target, reading: Reading) -> Iterator[Found]:
    """The script of a job with the files that it names, and its output."""
    for number, path in enumerate(target.files):
        if number:
            yield from _file("log", path, _named(path, target), reading)
        else:
            yield from _script(path, target, reading)


def of_folders(target: Target, reading: Reading) -> Iterator[Found]:
    """Files of the newest run in the run's folders. A configuration counts if no command names another one."""
    named = target.process is not None
    for folder in (target.folder, *target.beside):
        choice = run_folder.chosen(reading.entries(folder))
        ranks = {entry.path: reading.end(folder / entry.path, _TAIL) for role, entry in choice if role.name == "rank"}
        telling = run_folder.telling_ranks(ranks)
        programs = [entry.path for role, entry in choice if role.name == "program"]
        program = run_folder.training_program({name: _source(reading, folder / name) for name in programs})
        for role, entry in choice:
            path = folder / entry.path
            if role.name == "history" and entry.size > LARGEST_HISTORY:
                reading.refused.append(entry.path)
            elif role.name == "script" and target.process is None:
                found = tuple(_script(path, target, reading))
                named |= len(found) > 1
                yield from found
            elif role.name in _CHOSEN and entry.path not in (*telling, program):
                continue
            elif not (named and role.name in ("script", "config")):
                yield from _file(role.name, path, _named(path, target), reading)


_CHOSEN = ("rank", "program")
"""Roles of which only some files tell of the run."""


def _source(reading: Reading, path: Path) -> str:
    return reading.end(path, _TAIL).decode("utf-8", "replace")


def _script(path: Path, target: Target, reading: Reading) -> Iterator[Found]:
    """A script that launches something, with the files below the run's folder that it names."""
    for found in _file("script", path, _named(path, target), reading):
        text = _text(found.attachment)
        if not has_command(text):
            return
        yield found
        for folder in dict.fromkeys((path.parent, target.folder)):
            for name in files_of_command(text.split(), folder):
                file = Path(name).resolve()
                if file.is_relative_to(target.folder):
                    yield from _file("config", file, _named(file, target), reading)


def of_packages(target: Target, reading: Reading) -> Iterator[Found]:
    """The packages of the run's Python as its folders list them; nothing is started."""
    for place in _interpreters(target):
        rows = [f"{each.package}=={each.version}" for each in distributions(site_packages(place))]
        if target.process is not None or any(row.partition("==")[0] in _TELL_OF_TRAINING for row in rows):
            if rows:
                listing = Attachment(name="pip-list.txt", content="\n".join(rows) + "\n")
                yield Found(role="installed", attachment=listing, note="of_environment", value=str(place))
            return


def _interpreters(target: Target) -> Iterator[Path]:
    if target.process is not None:
        if (interpreter := target.process.interpreter) is not None:
            yield interpreter
        return
    for folder in (target.folder, *target.folder.parents[:3]):
        yield from (folder / name for name in _ENVIRONMENTS if (folder / name / "pyvenv.cfg").is_file())
    yield Path(sys.prefix)


def of_devices(target: Target, reading: Reading) -> Iterator[Found]:
    """The graphics cards, as their driver's program or the driver lists them."""
    told = said_by(("nvidia-smi",))
    if not told:
        for path in (PROC / "driver/nvidia/version", *sorted(PROC.glob("driver/nvidia/gpus/*/information"))[:16]):
            with suppress(OSError):
                told += path.read_text(errors="replace")
    if told:
        yield Found(role="devices", attachment=Attachment(name="nvidia-smi.log", content=told))


COLLECTORS: tuple[Collector, ...] = (of_process, of_job, of_folders, of_packages, of_devices)
"""In the order in which they may spend the budget."""


def collect(target: Target, seconds: float = SECONDS, collectors: Sequence[Collector] = COLLECTORS) -> Collected:
    """Everything within the bounds. A source that fails leaves the others."""
    reading, found = Reading.within(seconds), list[Found]()
    for collector in collectors:
        with suppress(OSError):
            found += collector(target, reading)
    return Collected(
        target=target,
        found=tuple(found),
        unread=tuple(dict.fromkeys(reading.refused)),
        missing=run_folder.missing_kinds(item.role for item in found),
        links=reading.links,
        cut_short=reading.cut_short,
    )


def with_stacks(collected: Collected) -> Collected:
    """Also where the ranks of the running process stand. Raises `NotFound` if there is none on this machine."""
    if (launcher := collected.target.process) is None:
        raise NotFound("no process of this run is on this machine", hint="name it: trainmedic doctor --stacks PID")
    taken = stacks.collect(stacks.find_ranks(launcher.pid))
    found = (Found(role="stacks", attachment=file) for file in taken.files if file.content)
    return replace(collected, found=(*collected.found, *found), unread=(*collected.unread, *taken.unread))


def _file(role: str, path: Path, name: str, reading: Reading) -> Iterator[Found]:
    read = reading.file(path)
    if read is None:
        return
    content, left_out, passed = read
    attachment = Attachment(name=name, content=content, left_out=left_out)
    if role in _TOLD_AS_TEXT:
        ending, tell = _TOLD_AS_TEXT[role]
        text = tell(attachment)
        if not text:
            reading.refused.append(name)
            return
        attachment = Attachment(name=name + ending, content=text)
    yield Found(role=role, attachment=attachment, note="end_alone" if passed else "", value=str(passed))


def _named(path: Path, target: Target) -> str:
    """The path below the run's folder, if it is there."""
    return str(path.relative_to(target.folder) if path.is_relative_to(target.folder) else path)


def _text(attachment: Attachment) -> str:
    content = attachment.content
    decoded = decode(content) if isinstance(content, bytes) else (content, "")
    return decoded[0] if decoded is not None else ""


def _arguments(attachment: Attachment) -> str:
    """The settings of ``training_args.bin``: a pickle, in an archive if torch wrote it lately."""
    content = attachment.content
    if isinstance(content, bytes) and archives.is_archive(content):
        files = archives.open_archive(attachment.name, content, 1).files
        content = files[0].content if files else b""
    return str(opened(attachment.name, content, 0, 0).content or "") if isinstance(content, bytes) else ""


_TOLD_AS_TEXT: dict[str, tuple[str, Callable[[Attachment], str]]] = {
    "arguments": (".py", _arguments),
    "rank_error": (".log", lambda file: run_folder.callstack_of_rank(_text(file))),
    "tracked_command": (".sh", lambda file: run_folder.command_of_tracker(_text(file))),
}
"""What is not read as it is: the ending of the name under which its text is, and what makes that."""
