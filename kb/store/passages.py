"""Metadata of each chunk for searching, without loading all texts, which would take a tenth of a start."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import overload

from trainmedic.kb.engine.mechanism import page_of
from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.chunks import Chunk
from trainmedic.kb.store.manifest import REBUILD

CHUNKS = "chunks.json"
PASSAGES = "passages.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """``causes[n]`` and ``parts[n]`` are those of chunk ``n``; ``page_ids`` are the pages of all chunks, sorted."""

    causes: Sequence[tuple[str, ...]]
    parts: Sequence[str]
    page_ids: tuple[str, ...]


class Chunks(Sequence[Chunk]):
    """The chunks of an index, read when the first is wanted. Raises `StoreError` if they are gone by then."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._size = size

    @cached_property
    def _read(self) -> tuple[Chunk, ...]:
        try:
            return read_chunks(self._folder)
        except OSError as error:
            raise StoreError(f"{self._folder / CHUNKS} cannot be read", hint=REBUILD) from error

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, number: int) -> Chunk: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Chunk, ...]: ...
    def __getitem__(self, number: int | slice) -> Chunk | tuple[Chunk, ...]:
        return self._read[number]


def write_passages(pieces: Sequence[Chunk], folder: Path) -> None:
    names = [field.name for field in fields(Chunk)]  # `asdict` takes ten times as long
    data = [{name: getattr(piece, name) for name in names} for piece in pieces]
    (folder / CHUNKS).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    groups = {causes: number for number, causes in enumerate(dict.fromkeys(piece.cases for piece in pieces))}
    kinds = {part: number for number, part in enumerate(dict.fromkeys(piece.part for piece in pieces))}
    columns = {
        "groups": list(groups),
        "group": [groups[piece.cases] for piece in pieces],
        "parts": list(kinds),
        "part": [kinds[piece.part] for piece in pieces],
    }
    (folder / PASSAGES).write_text(json.dumps(columns), encoding="utf-8")


def read_chunks(folder: Path) -> tuple[Chunk, ...]:
    data = json.loads((folder / CHUNKS).read_bytes())
    for item in data:
        item["cases"] = tuple(item["cases"])
    return tuple(Chunk(**item) for item in data)


def read_passages(folder: Path) -> Passages:
    columns = json.loads((folder / PASSAGES).read_bytes())
    groups, parts = [tuple(group) for group in columns["groups"]], columns["parts"]
    return Passages(
        causes=[groups[number] for number in columns["group"]],
        parts=[parts[number] for number in columns["part"]],
        page_ids=page_ids(groups),
    )


def page_ids(groups: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The ids of the pages that causes belong to, sorted."""
    return tuple(sorted({page_of(cause) for causes in groups for cause in causes}))
