"""The interface's texts and the shipped examples, from the package's TOML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from trainmedic.kb.data_files import read_toml
from trainmedic.kb.model.place import Attachment

Language: TypeAlias = Literal["en", "zh"]
Words: TypeAlias = Mapping[str, Any]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question with its files that runs with one click; all but the files is in the page's language."""

    id: str
    title: str
    detail: str
    question: str
    files: tuple[Attachment, ...]


@cache
def words(language: Language) -> Words:
    return read_toml(HERE / "texts" / f"{language}.toml")


@cache
def examples(language: Language) -> tuple[Example, ...]:
    """The examples, in the order of that language's page."""
    content = read_toml(HERE / "texts" / "examples.toml")
    by_id = {item["id"]: item for item in content["example"]}
    return tuple(
        Example(
            id=entry["id"],
            title=entry["title"],
            detail=entry["detail"],
            question=entry["question"],
            files=tuple(Attachment(**file) for file in by_id[entry["id"]].get("file", ())),
        )
        for entry in words(language)["example"]
    )


def path_of(language: Language, page: str = "") -> str:
    """The address of a page: ``/``, ``/zh/``, ``/knowledge/``, ``/zh/knowledge/``."""
    return ("/zh/" if language == "zh" else "/") + (f"{page}/" if page else "")
