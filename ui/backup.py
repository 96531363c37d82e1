"""Backups: the history, the drafts and the pinned version of the knowledge in one archive.

What is left out is made of something else: the index of one's pages, and the threads that `trainmedic ingest` reads.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store import index
from trainmedic.kb.store.sources import require_inside
from trainmedic.kb.store.words import READABLE_FOLDER
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import engine_of
from trainmedic.service.storage.dump import load, snapshot
from trainmedic.ui.desk import drafts_folder
from trainmedic.ui.loading import index_root

FORMAT = 1
HEAD = "backup.json"
HISTORY, DRAFTS, INDEX = "history/", "drafts/", "index/"
"""The folders of the archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What an archive holds. ``revision`` is that of the history's schema, ``rows`` the number of rows by table."""

    format: int
    trainmedic: str
    made: str
    revision: str
    pinned: str | None
    rows: Mapping[str, int]
    drafts: int


def back_up(settings: Settings, file: Path, now: datetime | None = None) -> Backup:
    """Write an archive; the service may go on writing. Raises `StoreError`."""
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        # Conversations are private: nobody else may read them.
        descriptor = os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            backup = _write(settings, archive, now or datetime.now(UTC))
        os.replace(unfinished, file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return backup


def _write(settings: Settings, archive: zipfile.ZipFile, now: datetime) -> Backup:
    engine = engine_of(settings.history_url)
    try:
        with snapshot(engine) as (revision, tables):
            rows = {name: _write_lines(archive, f"{HISTORY}{name}.jsonl", lines) for name, lines in tables.items()}
    finally:
        engine.dispose()
    drafts = _write_files(archive, drafts_folder(settings), DRAFTS)
    root = index_root(settings)
    pinned = index.pinned(root)
    if pinned is not None and (root / pinned).is_dir():
        _write_files(archive, root / pinned, INDEX)
    backup = Backup(
        format=FORMAT,
        trainmedic=version("trainmedic"),
        made=now.isoformat(timespec="seconds"),
        revision=revision,
        pinned=pinned,
        rows=rows,
        drafts=drafts,
    )
    archive.writestr(HEAD, json.dumps(asdict(backup), indent=2))
    return backup


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
    """Bring an archive's content into an empty database and data folder. Raises `StoreError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            backup = _head(archive, file)
            drafts = drafts_folder(settings)
            if drafts.is_dir() and any(drafts.iterdir()):
                raise StoreError(
                    f"{drafts} holds drafts already", hint="restore into an empty database and data folder"
                )
            settings.data_dir.mkdir(parents=True, exist_ok=True)
            _restore_history(settings, archive, backup)
            _extract(archive, DRAFTS, drafts)
            _restore_pin(settings, archive, backup)
    except zipfile.BadZipFile as error:
        raise StoreError(f"{file} is no backup, or is damaged ({error})") from error
    except OSError as error:
        raise StoreError(f"{file} cannot be restored ({error.strerror or error})") from error
    return backup


def _head(archive: zipfile.ZipFile, file: Path) -> Backup:
    """What the archive holds, once it is known to be whole."""
    for name in archive.namelist():
        require_inside(name, file)
    if (damaged := archive.testzip()) is not None:
        raise StoreError(f"{file} is damaged: {damaged}")
    try:
        head = json.loads(archive.read(HEAD))
        if head["format"] != FORMAT:
            raise StoreError(f"{file} has the format {head['format']}, this release reads {FORMAT}")
        return Backup(**head)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{file} is no backup: {HEAD} cannot be read") from error


def _restore_history(settings: Settings, archive: zipfile.ZipFile, backup: Backup) -> None:
    def lines(name: str) -> Iterator[str]:
        with archive.open(f"{HISTORY}{name}.jsonl") as member:
            yield from TextIOWrapper(member, "utf-8", errors="surrogatepass", newline="\n")

    engine = engine_of(settings.history_url)
    try:
        load(engine, backup.revision, {name: partial(lines, name) for name in backup.rows})
    finally:
        engine.dispose()


def _restore_pin(settings: Settings, archive: zipfile.ZipFile, backup: Backup) -> None:
    root = index_root(settings)
    if backup.pinned is None:
        return
    if any(name.startswith(INDEX) for name in archive.namelist()):
        with index.locked(root):
            aside = Path(tempfile.mkdtemp(prefix=index.BUILDING, dir=root))
            aside.chmod(READABLE_FOLDER)
            try:
                _extract(archive, INDEX, aside)
                index.adopt(aside, root)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    index.pin(root, backup.pinned)


def _extract(archive: zipfile.ZipFile, below: str, folder: Path) -> None:
    for name in archive.namelist():
        if name.startswith(below):
            path = folder / name.removeprefix(below)
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as member, path.open("wb") as copy:
                shutil.copyfileobj(member, copy)
