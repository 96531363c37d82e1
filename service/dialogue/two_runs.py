"""The files of two runs in one question, one that works and one that fails. Pure.

A file's side is a word of its name or folder (``good.yaml``, ``fails/train.log``), or what the question says of it
("run_a.yaml works, run_b.yaml gives NaN"). A file without a side belongs to both runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainmedic.kb.model.place import Attachment
from trainmedic.service.dialogue.vocabulary import phrases

Side = Literal["works", "fails"]
WORKS = frozenset(("good", "works", "working", "worked", "ok", "okay", "healthy", "baseline", "正常", "成功"))
FAILS = frozenset(("bad", "fails", "failing", "failed", "broken", "失败", "异常", "报错"))
LONGEST_CLAUSE = 120
"""Characters after a file's name in which the question may say how its run went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRuns:
    """The files of each run, those without a side in both."""

    works: tuple[Attachment, ...]
    fails: tuple[Attachment, ...]


def two_runs(question: str, attachments: Sequence[Attachment]) -> TwoRuns | None:
    """The two runs that the files are of; None if they are of one run, or have nothing to compare."""
    sides = sides_of(question, [attachment.name for attachment in attachments])
    endings = {side: {_ending(name) for name, other in sides.items() if other == side} for side in ("works", "fails")}
    if not endings["works"] & endings["fails"]:
        return None
    return TwoRuns(
        works=tuple(item for item in attachments if sides.get(item.name) != "fails"),
        fails=tuple(item for item in attachments if sides.get(item.name) != "works"),
    )


def of_failing_run(question: str, attachments: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    """The attachments without those of the run that works, if there is one."""
    runs = two_runs(question, attachments)
    return attachments if runs is None else runs.fails


def sides_of(question: str, names: Sequence[str]) -> Mapping[str, Side]:
    """The side of each file that has one."""
    marked = {name: side for name in names if (side := _marked(name)) is not None}
    if set(marked.values()) != {"works", "fails"}:
        marked |= _stated(question, [name for name in names if name not in marked])
    alike = len(names) == 2 and _ending(names[0]) == _ending(names[1])
    if alike and len(marked) == 1 and phrases("compares_runs").search(question):
        (known,) = marked
        other = names[1] if known == names[0] else names[0]
        marked[other] = "works" if marked[known] == "fails" else "fails"
    return marked


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _words(name: str) -> list[str]:
    """The words and numbers of a path, in lower case."""
    return "".join(character if character.isalnum() else " " for character in name.lower()).split()


def _marked(name: str) -> Side | None:
    folder, _, file = name.rpartition("/")
    for words in (_words(folder), _words(file)):
        works, fails = not WORKS.isdisjoint(words), not FAILS.isdisjoint(words)
        if works != fails:
            return "works" if works else "fails"
    return None


def _stated(question: str, names: Sequence[str]) -> dict[str, Side]:
    """What the question says of the files it names, up to the next of them."""
    text = question.lower()
    mentions: list[tuple[int, int, str]] = []
    for name in names:
        stem = name.rpartition("/")[2].rpartition(".")[0] or name
        for alias in (name.lower(), stem.lower(), " ".join(_words(stem))):
            at = text.find(alias) if len(alias) > 2 else -1
            if at >= 0:
                mentions.append((at, at + len(alias), name))
                break
    mentions.sort()
    starts = [*(start for start, _, _ in mentions[1:]), len(text)][: len(mentions)]
    sides: dict[str, Side] = {}
    for (_, end, name), limit in zip(mentions, starts, strict=True):
        clause = text[end : min(limit, end + LONGEST_CLAUSE)]
        if phrases("run_fails").search(clause):
            sides[name] = "fails"
        elif phrases("run_works").search(clause):
            sides[name] = "works"
    return sides
