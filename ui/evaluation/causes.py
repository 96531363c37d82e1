"""Accuracy of answers over a question set: its items with the expected causes and verdicts, and the figures."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.ranking.diagnose import LIKELY

VERDICTS = ("answered", "need_input", "not_in_kb", "no_fault", "explained")
SPLITS = ("tune", "held_out")
Answerer = Callable[[Ask], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question. ``cases`` holds the ids any of which is right as first cause (empty: none is asked for);
    ``rules`` must fire, ``silent`` must not. ``split`` is ``tune`` or ``held_out``."""

    id: str
    question: str
    verdict: str
    attachments: tuple[Attachment, ...] = ()
    cases: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    language: str = "en"
    framework: str = ""
    split: str = "tune"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    item: Item
    verdict: str
    causes: tuple[str, ...]
    confidences: tuple[str, ...]
    fired: tuple[str, ...]
    scores: tuple[float, ...] = ()

    @property
    def named(self) -> bool:
        """Whether the answer commits to its first cause instead of listing several as possible."""
        if not self.causes or self.verdict in ("answered", "no_fault"):
            return bool(self.causes)
        first, second = (*self.scores, 0.0, 0.0)[:2]
        return first >= max(LIKELY, 2 * second)

    @property
    def rank(self) -> int | None:
        """The 1-based rank of the right cause, or None."""
        return next((n for n, case in enumerate(self.causes, start=1) if case in self.item.cases), None)

    @property
    def false_answer(self) -> bool:
        """Whether it answered a question that has no answer."""
        return self.verdict == "answered" and self.item.verdict != "answered"

    @property
    def false_claim(self) -> bool:
        """A false answer that claims more than low confidence."""
        return self.false_answer and self.confidences[:1] != ("low",)

    @property
    def rules_right(self) -> bool:
        """All rules that must fire did, and none that must be silent."""
        fired = set(self.fired)
        return set(self.item.rules) <= fired and not fired & set(self.item.silent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """``right`` of ``total``."""

    right: int
    total: int

    @property
    def value(self) -> float | None:
        """The share, or None over nothing."""
        return self.right / self.total if self.total else None

    def __str__(self) -> str:
        value = "–" if self.value is None else f"{self.value:.3f}"
        return f"{value} ({self.right}/{self.total})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures over one group of outcomes. ``f1`` is micro-averaged over the causes named and expected."""

    first: Share
    in_three: Share
    f1: Share
    verdict: Share
    false_answers: Share
    false_claims: Share
    rules: Share
    high: Share
    medium: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All outcomes, the figures over all of them and by group, and the verdict confusion."""

    outcomes: tuple[Outcome, ...]
    overall: Figures
    groups: Mapping[str, Figures]
    confusion: Mapping[tuple[str, str], int]


def read_items(path: Path) -> tuple[Item, ...]:
    """The items of a JSONL file, or of all those in a folder, in order.

    Raises `InvalidRequest` naming the line that is wrong.
    """
    items = []
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else (path,):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                items.append(item(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidRequest(f"{file}:{number}: {error}") from error
    ids = Counter(i.id for i in items)
    twice = sorted(name for name, count in ids.items() if count > 1)
    if twice:
        raise InvalidRequest(f"{path}: used twice: {', '.join(twice)}")
    return tuple(items)


def item(data: Mapping[str, object]) -> Item:
    """One item from its JSON object."""
    known = {"id", "question", "attachments", "language", "framework", "split", "source", "expect"}
    if unknown := sorted(set(data) - known):
        raise ValueError(f"unknown keys {unknown}")
    expect = data["expect"]
    if not isinstance(expect, dict):
        raise ValueError("expect must be an object")
    if unknown := sorted(set(expect) - {"verdict", "cases", "rules", "silent"}):
        raise ValueError(f"unknown keys in expect {unknown}")
    if expect["verdict"] not in VERDICTS:
        raise ValueError(f"verdict must be one of {VERDICTS}")
    pasted = data.get("attachments", [])
    if not isinstance(pasted, list):
        raise ValueError("attachments must be a list")
    for name in ("cases", "rules", "silent"):
        if not isinstance(expect.get(name, []), list):
            raise ValueError(f"expect.{name} must be a list")
    if data.get("split", "tune") not in SPLITS:
        raise ValueError(f"split must be one of {SPLITS}")
    return Item(
        id=str(data["id"]),
        question=str(data["question"]),
        verdict=expect["verdict"],
        attachments=tuple(Attachment(name=a["name"], content=a["content"]) for a in pasted),
        cases=tuple(expect.get("cases", ())),
        rules=tuple(expect.get("rules", ())),
        silent=tuple(expect.get("silent", ())),
        language=str(data.get("language", "en")),
        framework=str(data.get("framework", "")),
        split=str(data.get("split", "tune")),
        source=str(data.get("source", "")),
    )


def evaluate(items: Sequence[Item], answer: Answerer) -> Evaluation:
    return evaluated(tuple(outcome(one, answer) for one in items))


def evaluated(outcomes: tuple[Outcome, ...]) -> Evaluation:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[f"language {one.item.language}"].append(one)
        groups[f"framework {one.item.framework or 'none'}"].append(one)
        groups[f"paste {'with files' if one.item.attachments else 'question alone'}"].append(one)
    confusion = Counter((one.item.verdict, one.verdict) for one in outcomes)
    return Evaluation(
        outcomes=outcomes,
        overall=figures(outcomes),
        groups={name: figures(groups[name]) for name in sorted(groups)},
        confusion=dict(sorted(confusion.items())),
    )


def outcome(one: Item, answer: Answerer) -> Outcome:
    return outcome_of(one, answer(request_of(one)))


def request_of(one: Item) -> Ask:
    return Ask(question=one.question, attachments=one.attachments)


def outcome_of(one: Item, answer: Answer) -> Outcome:
    return Outcome(
        item=one,
        verdict=answer.verdict,
        causes=tuple(cause.case_id for cause in answer.causes),
        confidences=tuple(cause.confidence for cause in answer.causes),
        fired=tuple(sorted({f.rule_id for f in answer.findings if f.status == "fired"})),
        scores=tuple(cause.score for cause in answer.causes),
    )


def figures(outcomes: Sequence[Outcome]) -> Figures:
    with_cause = [one for one in outcomes if one.item.cases]
    must_not = [one for one in outcomes if one.item.verdict != "answered"]
    with_rules = [one for one in outcomes if one.item.rules or one.item.silent]
    return Figures(
        first=share(one.rank == 1 for one in with_cause),
        in_three=share(one.rank is not None and one.rank <= 3 for one in with_cause),
        f1=_f1(outcomes),
        verdict=share(one.verdict == one.item.verdict for one in outcomes),
        false_answers=share(one.false_answer for one in must_not),
        false_claims=share(one.false_claim for one in must_not),
        rules=share(one.rules_right for one in with_rules),
        high=_promise(outcomes, "high"),
        medium=_promise(outcomes, "medium"),
    )


def _f1(outcomes: Sequence[Outcome]) -> Share:
    """Micro-averaged F1."""
    right = sum(one.named and one.rank == 1 for one in outcomes)
    named = sum(one.named for one in outcomes)
    expected = sum(bool(one.item.cases) for one in outcomes)
    return Share(right=2 * right, total=named + expected)


def _promise(outcomes: Sequence[Outcome], word: str) -> Share:
    """How often a first cause of this confidence was right."""
    promised = [one for one in outcomes if one.confidences[:1] == (word,)]
    return share(one.rank == 1 for one in promised)


def share(flags: Iterable[bool]) -> Share:
    values = list(flags)
    return Share(right=sum(values), total=len(values))


def table(evaluation: Evaluation) -> str:
    heads = ("first", "in_three", "f1", "verdict", "false_answers", "false_claims", "rules", "high", "medium")
    rows = {"all": evaluation.overall, **evaluation.groups}
    width = max(len(name) for name in rows)
    lines = [f"{'':{width}}  " + "  ".join(f"{head:>16}" for head in heads)]
    for name, values in rows.items():
        lines.append(f"{name:{width}}  " + "  ".join(f"{getattr(values, head)!s:>16}" for head in heads))
    lines += ["", "verdict expected → given"]
    lines += [f"  {expected:>10} → {actual:<10} {n}" for (expected, actual), n in evaluation.confusion.items()]
    return "\n".join(lines) + "\n"


def misses(evaluation: Evaluation) -> str:
    """One line for each wrong answer."""
    lines = []
    for one in evaluation.outcomes:
        wrong_cause = bool(one.item.cases) and one.rank != 1
        if one.verdict == one.item.verdict and not wrong_cause and one.rules_right:
            continue
        first = one.causes[0] if one.causes else "-"
        lines.append(
            f"{one.item.id}: {one.item.verdict}/{','.join(one.item.cases) or '-'} "
            f"got {one.verdict}/{first} rank {one.rank} fired {','.join(one.fired) or '-'}"
        )
    return "\n".join(lines) + ("\n" if lines else "")
