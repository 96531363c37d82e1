"""Accuracy on incidents from outside: real threads with a confirmed cause, scored by what an answer must mention.

A cause is right if a passage of it (its title, one paragraph of the explanation, and the fix, in one language) mentions
one alternative of every group that the incident requires: words scattered over a long page prove nothing. No page is
named, so an incident whose page is missing counts as a miss.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer.schema import Answer, CauseView
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.evaluation.causes import Share, share

Group = tuple[str, ...]
Language = Literal["en", "zh"]
_SEPARATORS = regex(r"[\s_\-‐–—]+")
_LATIN = regex(r"[a-z0-9]")
SIDES = ("tuning", "unseen")
GIVEN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "framework": ("framework",),
        "algorithm": ("stage",),
        "stage": ("stage",),
        "model": ("model",),
        "model_family": ("model",),
        "log": ("log", "traceback"),
        "config": ("config", "command"),
        "command": ("command",),
        "card": ("gpu",),
        "dataset": ("dataset",),
        "version:torch": ("torch_version",),
        "version:transformers": ("transformers_version",),
    }
)
"""A fact that is asked for → the facts of the incident that already say it."""
_WRITTEN = frozenset({".yaml", ".yml", ".json", ".jsonc", ".toml", ".cfg", ".ini", ".sh", ".py", ".ipynb"})
HELD_BY: Mapping[str, frozenset[str]] = MappingProxyType(
    {"config": _WRITTEN, "command": _WRITTEN, "log": frozenset({".log", ".txt", ".out", ".err"})}
)
"""A text that is asked for → the ends of the names of the files that may hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One thread. ``question`` maps language → the same question; ``language`` is the thread's own.

    ``required`` and ``mechanism`` are groups of alternatives; both are empty if the incident must not be answered
    (``expect`` is then ``no_fault``, ``off_domain`` or ``vague``). ``given`` are the facts it contains, ``later`` those
    that came up when they were asked for. Of a message that a reader labelled, ``right`` are the causes that are the
    true one, ``close`` those that are neither right nor wrong; ``labelled`` is the date.
    """

    id: str
    thread: str
    family: str
    language: Language
    question: Mapping[str, str]
    attachments: tuple[Attachment, ...]
    expect: str
    cause: Mapping[str, str]
    required: tuple[Group, ...]
    mechanism: tuple[Group, ...]
    kind: str
    confirmed_by: str = ""
    given: frozenset[str] = frozenset()
    later: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    right: frozenset[str] = frozenset()
    close: frozenset[str] = frozenset()
    labelled: str = ""

    def ask(self, language: str = "") -> Ask:
        return Ask(question=self.question[language or self.language], attachments=self.attachments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One answer to one incident. ``rank`` is the place of the first right cause, ``mechanism_rank`` of the first that
    at least states what is going on; None if none does. ``covered``: some cause of the knowledge is right. ``cited``: a
    page names the thread as its source, so that the incident is not a surprise to it."""

    incident: Incident
    language: str
    verdict: str
    rank: int | None
    mechanism_rank: int | None
    confidence: str
    score: float
    covered: bool
    empty: bool
    asked_given: tuple[str, ...]
    cited: bool = False

    @property
    def first(self) -> bool:
        return self.rank == 1

    @property
    def answered(self) -> bool:
        return self.first and self.verdict == "answered"

    @property
    def claimed(self) -> bool:
        """Whether an incident that must not be answered was: a cause named with more than low confidence."""
        return self.verdict == "answered" and self.confidence != "low"


def read_incidents(path: Path) -> tuple[Incident, ...]:
    """The incidents of a JSONL file. Raises `InvalidRequest` naming the line that is wrong."""
    incidents = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            incidents.append(incident_of(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidRequest(f"{path}:{number}: {error}") from error
    return tuple(incidents)


def sampled(incidents: Sequence[Incident], count: int) -> tuple[Incident, ...]:
    """``count`` incidents by a hash of their ids, the same ones every time; all if it is 0."""
    ordered = sorted(incidents, key=lambda incident: hashlib.sha256(incident.id.encode()).hexdigest())
    return tuple(ordered[: count or None])


def incident_of(data: Mapping[str, object]) -> Incident:
    """One incident from its JSON object."""
    fields = dict(data)
    for name in ("required", "mechanism"):
        fields[name] = tuple(tuple(group) for group in data[name])  # type: ignore[attr-defined]
    fields["attachments"] = tuple(Attachment(**attachment) for attachment in data["attachments"])  # type: ignore[attr-defined]
    fields["given"] = frozenset(data.get("given", ()))  # type: ignore[call-overload]
    for name in ("right", "close"):
        fields[name] = frozenset(data.get(name, ()))  # type: ignore[call-overload]
    for name in ("more", "else"):
        fields.pop(name, None)
    return Incident(**fields)  # type: ignore[arg-type]


def mentions(text: str, groups: Iterable[Group]) -> bool:
    """Whether a text mentions one alternative of every group; upper case, blanks, hyphens and underscores aside.

    A Latin alternative must begin a word: ``eps`` is not in ``steps``.
    """
    plain = _plain(text)
    return all(any(_occurs(_plain(alternative), plain) for alternative in group) for group in groups)


def _joined(text: str) -> str:
    return _plain(text).replace(" ", "")


@cache
def _plain(text: str) -> str:
    return _SEPARATORS.sub(" ", text.lower()).strip()


def _occurs(part: str, text: str) -> bool:
    start = text.find(part)
    while part and start >= 0:
        if start == 0 or not (_LATIN.match(part) and _LATIN.match(text[start - 1])):
            return True
        start = text.find(part, start + 1)
    return False


def passages(cause: Case) -> tuple[str, ...]:
    """The statements of a cause, as passages that are judged one by one.

    A mechanism states what is going on; of its origins only the first of an answer counts (`Scorer.states`).
    """
    parts = []
    for language in ("en", "zh"):
        title = cause.title.get(language)
        fix = "" if cause.level == "mechanism" else cause.section("fix", language)
        paragraphs = [text for text in cause.section("cause", language).split("\n\n") if text.strip()]
        parts += [f"{title}\n{paragraph}\n{fix}" for paragraph in paragraphs or [""]]
    return tuple(parts)


class Scorer:
    """Scores answers against incidents, over one body of knowledge (id → cause)."""

    def __init__(self, causes: Mapping[str, Case]) -> None:
        self._passages = {cause_id: passages(cause) for cause_id, cause in causes.items()}
        self._citing: dict[str, set[str]] = defaultdict(set)
        for cause_id, cause in causes.items():
            for reference in cause.sources:
                self._citing[reference.url.partition("#")[0]].add(cause_id)
        self._right: dict[tuple[Group, ...], frozenset[str]] = {}

    def right(self, groups: tuple[Group, ...]) -> frozenset[str]:
        """The ids of the causes that mention these groups."""
        if groups not in self._right:
            self._right[groups] = frozenset(
                cause_id
                for cause_id, texts in self._passages.items()
                if groups and any(mentions(text, groups) for text in texts)
            )
        return self._right[groups]

    def states(self, view: CauseView, groups: tuple[Group, ...], *, own_words: bool = False) -> bool:
        """Whether a cause of an answer mentions these groups, a mechanism together with its first origin.

        ``own_words``: a model's words count, not those of the page that it elects.
        """
        if not groups:
            return False
        if own_words:
            return mentions(f"{view.title}\n{view.cause}\n{view.fix}", groups)
        if view.case_id in self.right(groups):
            return True
        if view.level != "mechanism":
            return False
        first = view.fix.partition("\n")[0]
        return any(mentions(f"{view.title}\n{paragraph}\n{first}", groups) for paragraph in view.cause.split("\n\n"))

    def cites(self, incident: Incident) -> bool:
        """Whether a page names the incident's thread as its source."""
        return bool(self.citing(incident))

    def citing(self, incident: Incident) -> frozenset[str]:
        """The causes that name the incident's thread as their source."""
        return frozenset(self._citing.get(incident.thread.partition("#")[0], ()))

    def result(self, incident: Incident, language: str, answer: Answer) -> Result:
        first = answer.causes[0] if answer.causes else None
        own = answer.mode == "llm"
        right = [self.states(cause, incident.required, own_words=own) for cause in answer.causes]
        alike = [self.states(cause, incident.mechanism, own_words=own) for cause in answer.causes]
        return Result(
            incident=incident,
            language=language,
            verdict=answer.verdict,
            rank=_rank(right),
            mechanism_rank=_rank([a or b for a, b in zip(right, alike, strict=True)]),
            confidence=first.confidence if first is not None else "low",
            score=first.score if first is not None else 0.0,
            covered=bool(self.right(incident.required)),
            empty=first is None and not any(finding.status == "fired" for finding in answer.findings),
            asked_given=tuple(item.fact for item in answer.missing if was_given(item.fact, incident)),
            cited=self.cites(incident),
        )


def _rank(right: Sequence[bool]) -> int | None:
    return next((rank for rank, is_right in enumerate(right, start=1) if is_right), None)


def was_given(fact: str, incident: Incident) -> bool:
    """Whether an incident already says a fact that is asked for.

    A configuration or log that the question only describes is not given: its text is worth asking for, so a file of the
    incident must hold it. Nor is a framework that only the tracker implied: the incident has to name it.
    """
    if fact in HELD_BY and not any(PurePosixPath(file.name).suffix in HELD_BY[fact] for file in incident.attachments):
        return False
    if fact == "framework":
        texts = (*incident.question.values(), *(str(file.content) for file in incident.attachments))
        return any(_joined(incident.family) in _joined(text) for text in texts)
    if fact == f"version:{incident.family}":
        return "framework_version" in incident.given
    return any(name in incident.given for name in GIVEN.get(fact, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideFigures:
    """The figures over some results; see `docs/know/evaluation.md`."""

    first: Share
    in_three: Share
    first_and_answered: Share
    mechanism_first: Share
    coverage: Share
    high: Share
    at_high: Share
    medium: Share
    false_no_fault: Share
    empty: Share
    asked_given: Share
    must_not_answered: Share
    aurc: float


def outside_figures(results: Sequence[Result]) -> OutsideFigures:
    with_cause = [result for result in results if result.incident.expect == "cause"]
    must_not = [result for result in results if result.incident.expect != "cause"]
    high = [result for result in with_cause if result.verdict == "answered" and result.confidence == "high"]
    medium = [result for result in with_cause if result.verdict == "answered" and result.confidence == "medium"]
    return OutsideFigures(
        first=share(result.first for result in with_cause),
        in_three=share(result.rank is not None and result.rank <= 3 for result in with_cause),
        first_and_answered=share(result.answered for result in with_cause),
        mechanism_first=share(result.mechanism_rank == 1 for result in with_cause),
        coverage=share(result.covered for result in with_cause),
        high=share(result.first for result in high),
        at_high=Share(right=len(high), total=len(with_cause)),
        medium=share(result.first for result in medium),
        false_no_fault=share(result.verdict == "no_fault" for result in with_cause),
        empty=share(result.empty for result in with_cause),
        asked_given=share(bool(result.asked_given) for result in with_cause),
        must_not_answered=share(result.claimed for result in must_not),
        aurc=aurc([(result.score, result.first) for result in with_cause]),
    )


def risk_coverage(scored: Sequence[tuple[float, bool]]) -> tuple[tuple[float, float], ...]:
    """(coverage, risk) where the surest answers are given first, then ever more of them; ties as one step."""
    ordered = sorted(scored, key=lambda item: -item[0])
    curve: list[tuple[float, float]] = []
    wrong = 0
    for number, (score, right) in enumerate(ordered, start=1):
        wrong += not right
        if number == len(ordered) or ordered[number][0] != score:
            curve.append((number / len(ordered), wrong / number))
    return tuple(curve)


def aurc(scored: Sequence[tuple[float, bool]]) -> float:
    """The area under the risk-coverage curve: 0 is perfect, the error rate is what random order gives."""
    area = before = 0.0
    for coverage, risk in risk_coverage(scored):
        area += (coverage - before) * risk
        before = coverage
    return area


def coverage_at(curve: Iterable[tuple[float, float]], risk: float) -> float:
    """The greatest coverage of a risk-coverage curve at which the risk is at most ``risk``."""
    return max((coverage for coverage, wrong in curve if wrong <= risk), default=0.0)


def lower_bound(right: int, total: int, error: float = 0.05) -> float:
    """The one-sided Clopper–Pearson lower bound of a share."""
    if right == 0 or total == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        tail = sum(math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in range(right, total + 1))
        low, high = (p, high) if tail < error else (low, p)
    return low


def ask_all(
    incidents: Iterable[Incident], answer: Callable[[Ask], Answer], scorer: Scorer, languages: Sequence[str] = ("",)
) -> tuple[Result, ...]:
    """Every incident asked in each of the languages (empty: its own) that its question is written in."""
    return tuple(
        scorer.result(incident, language or incident.language, answer(incident.ask(language)))
        for incident in incidents
        for language in languages
        if not language or language in incident.question
    )


COVERAGES = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
"""Points of the risk-coverage curve that a report shows."""
RISKS = (0.05, 0.1)


def outside_table(results: Sequence[Result]) -> str:
    """The figures over all results, by language, by family and by kind of cause, and the risk-coverage curve."""
    groups: dict[str, list[Result]] = {"all": list(results)}
    for language in sorted({result.language for result in results}):
        groups[f"asked in {language}"] = [result for result in results if result.language == language]
    groups["thread cited by a page"] = [result for result in results if result.cited]
    groups["thread not cited"] = [result for result in results if not result.cited]
    for name in ("family", "kind"):
        for value in sorted({getattr(result.incident, name) for result in results}):
            groups[f"{name} {value}"] = [r for r in results if getattr(r.incident, name) == value]
    heads = (
        *("first", "in_three", "first_and_answered", "mechanism_first", "coverage", "high", "at_high", "medium"),
        *("false_no_fault", "empty", "asked_given", "must_not_answered"),
    )
    width = max(len(name) for name in groups)
    lines = [f"{'':{width}}  " + "  ".join(f"{head:>18}" for head in heads) + "    aurc"]
    for name, members in groups.items():
        figures = outside_figures(members)
        cells = "  ".join(f"{getattr(figures, head)!s:>18}" for head in heads)
        lines.append(f"{name:{width}}  {cells}   {figures.aurc:.3f}")
    overall = outside_figures(results)
    for name in ("high", "medium"):
        promised: Share = getattr(overall, name)
        lines.append(f"{name}: at least {lower_bound(promised.right, promised.total):.3f} (one-sided 95 %)")
    curve = risk_coverage([(r.score, r.first) for r in results if r.incident.expect == "cause"])
    lines.append("coverage → risk, the surest first:")
    for wanted in COVERAGES:
        point = next((point for point in curve if point[0] >= wanted), None)
        if point is not None:
            lines.append(f"  {point[0]:.2f} → {point[1]:.3f}")
    lines += [f"coverage at a risk of at most {risk:.2f}: {coverage_at(curve, risk):.3f}" for risk in RISKS]
    return "\n".join(lines) + "\n"
