"""Backups: history, drafts and pinned version of the knowledge in one archive, of everybody and of each team.

What is left out is made of something else: the index of one's pages, and the threads that `trainmedic ingest` reads.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter
from sqlalchemy.engine import Engine

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store import index
from trainmedic.kb.store.manifest import read_manifest
from trainmedic.kb.store.sources import require_inside
from trainmedic.kb.store.words import READABLE_FOLDER
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import engine_of, file_of
from trainmedic.service.storage.dump import clear, load, require_empty, snapshot
from trainmedic.ui.desk import drafts_folder
from trainmedic.ui.loading import index_root

FORMAT = 2
READABLE = (1, FORMAT)
"""Formats that are restored. The first had no teams."""
HEAD = "backup.json"
HISTORY, DRAFTS, INDEX, TEAMS = "history/", "drafts/", "index/", "teams/"
"""The folders of the archive. Below ``teams/<name>/`` are the first three once more."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError)
"""What zipfile raises for an archive that is damaged, encrypted or of an unknown compression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What an archive holds of one service: everybody's or a team's.

    ``revision`` is that of the history's schema, None without a history; ``rows`` the number of rows by table.
    """

    revision: str | None
    pinned: str | None
    rows: Mapping[str, int]
    drafts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup(Contents):
    """What an archive holds of everybody's service, and of the teams by their names."""

    format: int
    trainmedic: str
    made: str
    teams: Mapping[str, Contents] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One service of a backup. ``folder`` is where the archive has it."""

    folder: str
    settings: Settings
    contents: Contents


def back_up(settings: Settings, file: Path, now: datetime | None = None) -> Backup:
    """Write an archive; the service may go on writing. Raises `StoreError`."""
    try:
        target = file.resolve()
        if target.exists() and not target.is_file():
            raise StoreError(f"{file} is not a regular file", hint="the file - is standard output")
        # Conversations are private: the file is made so that nobody else may read it.
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", suffix=".unfinished", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                backup = write_backup(settings, stream, now)
            os.replace(name, target)
        finally:
            with suppress(OSError):
                Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{file} cannot be written ({error.strerror or error})") from error
    return backup


def write_backup(settings: Settings, stream: IO[bytes], now: datetime | None = None) -> Backup:
    """Write an archive into a stream, which need not be seekable. Raises `StoreError`."""
    # Looked up before the first byte is written.
    teams = {name: settings.of_team(name) for name in settings.team_folders}
    if settings.history_days and not _may_have_history(settings):
        raise _no_history(settings)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        everybodys = _write(settings, archive, "")
        if settings.history_days and everybodys.revision is None:
            raise _no_history(settings)
        backup = Backup(
            format=FORMAT,
            trainmedic=version("trainmedic"),
            made=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
            teams={name: _write(of_team, archive, f"{TEAMS}{name}/") for name, of_team in teams.items()},
            **asdict(everybodys),
        )
        archive.writestr(HEAD, json.dumps(asdict(backup), indent=2))
    return backup


def _may_have_history(settings: Settings) -> bool:
    """Whether there is a database; that of a file is not made by looking for it."""
    file = file_of(settings.history_url)
    return file is None or file.is_file()


def _no_history(settings: Settings) -> StoreError:
    place = file_of(settings.history_url) or "the database of database_url"
    hint = "run this with the settings of the service, such as TRAINMEDIC_DATA_DIR"
    return StoreError(f"there is no history in {place}", hint=hint)


def _write(settings: Settings, archive: zipfile.ZipFile, below: str) -> Contents:
    revision, rows = _write_history(settings, archive, below) if _may_have_history(settings) else (None, {})
    drafts = _write_files(archive, drafts_folder(settings), f"{below}{DRAFTS}")
    root = index_root(settings)
    pinned = index.pinned(root)
    if pinned is not None:  # a version of the package too: the next release has another one
        _write_files(archive, index.version_folder(root, pinned), f"{below}{INDEX}")
    return Contents(revision=revision, pinned=pinned, rows=rows, drafts=drafts)


def _write_history(settings: Settings, archive: zipfile.ZipFile, below: str) -> tuple[str | None, Mapping[str, int]]:
    engine = engine_of(settings.history_url)
    try:
        with snapshot(engine) as (revision, tables):
            return revision, {
                name: _write_lines(archive, f"{below}{HISTORY}{name}.jsonl", lines) for name, lines in tables.items()
            }
    finally:
        engine.dispose()


def _write_lines(archive: zipfile.ZipFile, name: str, lines: Iterable[str]) -> int:
    count = 0
    # Its size is not known in advance, and may be more than the old format's 4 GB.
    with archive.open(name, "w", force_zip64=True) as member:
        for line in lines:
            member.write(f"{line}\n".encode("utf-8", "surrogatepass"))
            count += 1
    return count


def _write_files(archive: zipfile.ZipFile, folder: Path, below: str) -> int:
    count = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with suppress(FileNotFoundError):  # a draft that was published meanwhile
            archive.write(path, f"{below}{path.relative_to(folder).as_posix()}")
            count += 1
    return count


def restore(settings: Settings, file: Path) -> Backup:
    """Bring an archive's content into empty databases and data folders; what fails is undone. Raises `StoreError`."""
    try:
        with file.open("rb") as stream:
            return restore_stream(settings, stream, str(file))
    except OSError as error:
        raise StoreError(f"{file} cannot be restored ({error.strerror or error})") from error


def restore_stream(settings: Settings, stream: IO[bytes], name: str) -> Backup:
    """As `restore`, from a seekable stream that messages call ``name``. Raises `OSError` too."""
    try:
        archive = zipfile.ZipFile(stream)
        damaged = archive.testzip()
    except _DAMAGED as error:
        raise StoreError(f"{name} is not a backup, or is damaged ({error})") from error
    if damaged is not None:
        raise StoreError(f"{name} is damaged: {damaged}")
    with archive, ExitStack() as undo:
        backup = _head(archive, name)
        parts = _parts(settings, backup, name)
        for part in parts:
            _require_whole(archive, part, name)
            _require_room(part)
        for part in parts:
            _restore_part(archive, part, name, undo)
        undo.pop_all()
    return backup


def _head(archive: zipfile.ZipFile, name: str) -> Backup:
    for member in archive.namelist():
        require_inside(member, Path(name))
    try:
        head = json.loads(archive.read(HEAD))
        if head["format"] not in READABLE:
            raise StoreError(f"{name} has the format {head['format']}, this release reads up to {FORMAT}")
        return TypeAdapter(Backup).validate_python(head)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{name} is not a backup: {HEAD} cannot be read") from error


def _parts(settings: Settings, backup: Backup, name: str) -> tuple[_Part, ...]:
    """The services of a backup. Raises `StoreError` for a team that the settings do not have."""
    if unknown := sorted(backup.teams.keys() - settings.team_folders.keys()):
        raise StoreError(f"{name} holds the team {unknown[0]}, which the setting teams does not name")
    everybodys = _Part(folder="", settings=settings, contents=backup)
    teams = (
        _Part(folder=f"{TEAMS}{team}/", settings=settings.of_team(team), contents=contents)
        for team, contents in backup.teams.items()
    )
    return everybodys, *teams


def _require_whole(archive: zipfile.ZipFile, part: _Part, name: str) -> None:
    """Raise `StoreError` unless the archive holds what its head says."""
    contents = part.contents
    members = archive.namelist()
    tables = {member for member in members if member.startswith(f"{part.folder}{HISTORY}")}
    if tables ^ {_table(part, table) for table in contents.rows} or (contents.rows and contents.revision is None):
        raise StoreError(f"{name} is damaged: the tables of its history are not those of {HEAD}")
    if contents.drafts != sum(member.startswith(f"{part.folder}{DRAFTS}") for member in members):
        raise StoreError(f"{name} is damaged: its drafts are not those of {HEAD}")
    lacks_index = contents.pinned is not None and not _has_index(archive, part)
    if lacks_index and contents.pinned not in index.kept(index_root(part.settings)):
        raise StoreError(f"{name} pins the version {contents.pinned}, of which there is no index")


def _table(part: _Part, table: str) -> str:
    return f"{part.folder}{HISTORY}{table}.jsonl"


def _has_index(archive: zipfile.ZipFile, part: _Part) -> bool:
    return any(member.startswith(f"{part.folder}{INDEX}") for member in archive.namelist())


def _require_room(part: _Part) -> None:
    """Raise `StoreError` if there is something that would be mixed with the backup."""
    drafts = drafts_folder(part.settings)
    if drafts.is_dir() and any(drafts.iterdir()):
        raise StoreError(f"{drafts} holds drafts already", hint="restore into an empty database and data folder")
    if part.contents.revision is not None and _may_have_history(part.settings):
        _with_engine(part.settings, require_empty)


def _restore_part(archive: zipfile.ZipFile, part: _Part, name: str, undo: ExitStack) -> None:
    settings = part.settings
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    undo.callback(shutil.rmtree, drafts_folder(settings), ignore_errors=True)
    _extract(archive, f"{part.folder}{DRAFTS}", drafts_folder(settings))
    if part.contents.pinned is not None:
        _restore_pin(archive, part, part.contents.pinned, name, undo)
    if part.contents.revision is not None:
        _restore_history(archive, part, part.contents.revision, name, undo)


def _restore_history(archive: zipfile.ZipFile, part: _Part, revision: str, name: str, undo: ExitStack) -> None:
    def lines(table: str, rows: int) -> Iterator[bytes]:
        count = 0
        with archive.open(_table(part, table)) as member:
            for line in member:
                yield line
                count += 1
        if count != rows:
            raise StoreError(f"{name} is damaged: {table} has {count} rows, {HEAD} says {rows}")

    existed = _may_have_history(part.settings)
    if not existed:
        undo.callback(_remove_database, part.settings)
    tables = {table: partial(lines, table, rows) for table, rows in part.contents.rows.items()}
    _with_engine(part.settings, lambda engine: load(engine, revision, tables))
    if existed:
        undo.callback(_with_engine, part.settings, clear)


def _with_engine(settings: Settings, use: Callable[[Engine], object]) -> None:
    engine = engine_of(settings.history_url)
    try:
        use(engine)
    finally:
        engine.dispose()


def _remove_database(settings: Settings) -> None:
    file = file_of(settings.history_url)
    if file is not None:
        for suffix in ("", "-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)


def _restore_pin(archive: zipfile.ZipFile, part: _Part, pinned: str, name: str, undo: ExitStack) -> None:
    root = index_root(part.settings)
    if _has_index(archive, part):
        with index.locked(root):
            aside = Path(tempfile.mkdtemp(prefix=index.BUILDING, dir=root))
            aside.chmod(READABLE_FOLDER)
            try:
                _extract(archive, f"{part.folder}{INDEX}", aside)
                if (held := read_manifest(aside).id) != pinned:
                    raise StoreError(f"{name} pins the version {pinned}, but holds the index {held}")
                index.adopt(aside, root)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    undo.callback(index.pin, root, index.pinned(root))
    index.pin(root, pinned)


def _extract(archive: zipfile.ZipFile, below: str, folder: Path) -> None:
    for name in archive.namelist():
        if name.startswith(below):
            path = folder / name.removeprefix(below)
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as member, path.open("wb") as copy:
                shutil.copyfileobj(member, copy)
