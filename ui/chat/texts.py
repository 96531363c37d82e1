"""The words of the interface and the shipped examples, read once from the package's TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from trainmedic.kb.model.place import Attachment

Language: TypeAlias = Literal["en", "zh"]
Words: TypeAlias = Mapping[str, Any]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question with its files that runs with one click; ``title`` and ``detail`` in the page's language."""

    id: str
    title: str
    detail: str
    question: str
    files: tuple[Attachment, ...]


@cache
def words(language: Language) -> Words:
    """Every word of the interface in one language."""
    return tomllib.loads((HERE / "texts" / f"{language}.toml").read_text(encoding="utf-8"))


@cache
def examples(language: Language) -> tuple[Example, ...]:
    """The examples in the order in which the page of that language shows them."""
    content = tomllib.loads((HERE / "texts" / "examples.toml").read_text(encoding="utf-8"))
    asked = {each["id"]: each for each in content["example"]}
    return tuple(
        Example(
            id=shown["id"],
            title=shown["title"],
            detail=shown["detail"],
            question=asked[shown["id"]]["question"],
            files=tuple(
                Attachment(name=file["name"], content=file["content"]) for file in asked[shown["id"]].get("file", ())
            ),
        )
        for shown in words(language)["example"]
    )


def path_of(language: Language, page: str = "") -> str:
    """The address of a page: ``/``, ``/zh/``, ``/knowledge/``, ``/zh/knowledge/``."""
    return ("/zh/" if language == "zh" else "/") + (f"{page}/" if page else "")
