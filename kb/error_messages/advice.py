"""Hand-written advice on messages: what a message means, what to change, what does not help.

A file ``advice/*.yaml`` is a list of entries; each names a package and a literal part of the message (``says``), which
may be the same in several releases. If a case covers the message, the entry names the case instead of giving advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainmedic.kb.error_messages.tables import Entry
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.page import Field, PageError, read_yaml

FOLDER = Path(__file__).parent / "advice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Advice about a message. ``meaning`` and ``change`` are None if only ``cases`` are named."""

    package: str
    says: str
    meaning: Text | None = None
    change: Text | None = None
    no_help: Text | None = None
    cases: tuple[str, ...] = ()


class AdviceBook:
    """All advice, looked up by message."""

    def __init__(self, advice: Iterable[Advice]) -> None:
        self._by_package: dict[str, list[Advice]] = {}
        for item in advice:
            self._by_package.setdefault(item.package, []).append(item)
        for items in self._by_package.values():
            items.sort(key=lambda item: (-len(item.says), item.says))

    def of(self, entry: Entry) -> Advice | None:
        """The advice whose literal part the message contains, the longest first; None if there is none."""
        literal = entry.literal
        return next((item for item in self._by_package.get(entry.package, ()) if item.says in literal), None)

    def all(self) -> tuple[Advice, ...]:
        return tuple(item for _, items in sorted(self._by_package.items()) for item in items)


def read_advice(text: str, name: str) -> tuple[Advice, ...]:
    """The advice in one file. Raises `PageError` with the line of the mistake."""
    entries = read_yaml(text, name)
    if entries is None:
        return ()
    return tuple(_advice(item) for item in Field(name, "advice", entries.node, 1).items())


def _advice(item: Field) -> Advice:
    fields = item.fields(["package", "says"], ["meaning", "change", "no_help", "cases"])
    texts: Mapping[str, Text] = {key: fields[key].both() for key in ("meaning", "change", "no_help") if key in fields}
    cases = fields.texts("cases")
    if not cases and not {"meaning", "change"} <= texts.keys():
        raise PageError(f"{item.page}:{item.line}: give meaning and change, or the cases that cover the message")
    return Advice(
        package=fields.text("package"),
        says=" ".join(fields.text("says").split()),
        cases=cases,
        **texts,
    )


@cache
def load_advice() -> AdviceBook:
    """The shipped advice. Raises `PageError` if a file is invalid."""
    paths = sorted(FOLDER.glob("*.yaml"))
    return AdviceBook(_read(paths))


def _read(paths: Iterable[Path]) -> tuple[Advice, ...]:
    return tuple(item for path in paths for item in read_advice(path.read_text(encoding="utf-8"), path.name))
