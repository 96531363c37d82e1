"""Values of the program as clients see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from tests.every_case import every_case
from trainmedic.kb.model.report import Severity, Text
from trainmedic.kb.projection import project


@dataclass(frozen=True)
class Inner:
    name: Text
    hidden: int = 1


@dataclass(frozen=True)
class Outer:
    title: Text
    severity: Severity
    note: Text | None = None
    inner: tuple[Inner, ...] = ()
    best: Inner | None = None
    hidden: int = 2


@dataclass(frozen=True)
class ShownInner:
    name: str


@dataclass(frozen=True)
class Shown:
    title: str
    severity: Literal["error", "warning"]
    note: str
    inner: tuple[ShownInner, ...]
    best: ShownInner | None
    kind: str = "shown"


INNER = Inner(Text(en="one", zh="一"))
OUTER = Outer(Text(en="two", zh="二"), Severity.ERROR, inner=(INNER,))


@every_case(("language", "one", "two"), [("en", "one", "two"), ("zh", "一", "二")])
def test_texts_become_strings_at_every_depth(language: str, one: str, two: str) -> None:
    shown = project(Shown, OUTER, language, kind="x")
    assert shown == Shown(two, "error", "", (ShownInner(one),), None, kind="x")


def test_what_is_given_is_kept_and_what_nobody_has_is_an_error() -> None:
    assert project(Shown, OUTER, kind="x", best=ShownInner("here")).best == ShownInner("here")
    with pytest.raises(AttributeError, match="kind"):
        project(Shown, OUTER)
