"""The considered causes as one tree, the likeliest first, each with what speaks for and against it. Pure.

The same answer tells of a cause as mechanism, origin and case: here it is one branch, and nothing is said twice in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import MissingView
from trainmedic.service.answer.schema import Answer, CauseView, DifferentialNode, State, StatementView
from trainmedic.ui.chat.texts import Language, words

LEAST = 0.005
"""A probability that is shown as 0 %."""
LIKELY_OTHER = 0.05
OPEN = ("answered", "need_input")
"""Verdicts beside which causes stand that the answer does not name."""
HEALTHY = ("healthy_log", "no_fault")
Statements = tuple[StatementView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A cause. ``ids`` are the pages it stands for, ``within`` the titles of what it is a case of."""

    ids: tuple[str, ...]
    title: str
    within: tuple[str, ...] = ()
    probability: float | None = None
    cause: CauseView | None = None
    supports: Statements = ()
    contradicts: Statements = ()
    excluded_by: Statements = ()
    missing: tuple[MissingView, ...] = ()
    state: State | None = None
    nodes: tuple[Branch, ...] = ()

    @property
    def rank(self) -> int:
        """The best rank of an answer's cause in it."""
        own = self.cause.rank if self.cause is not None else 1_000
        return min((own, *(node.rank for node in self.nodes)))

    def walk(self) -> Iterator[Branch]:
        yield self
        for node in self.nodes:
            yield from node.walk()

    @property
    def spans(self) -> Iterator[Span]:
        """The places of it and of everything below it."""
        for branch in self.walk():
            for statement in (*branch.supports, *branch.contradicts, *branch.excluded_by):
                yield from statement.evidence


def branches(answer: Answer, language: Language) -> tuple[Branch, ...]:
    """The causes of the answer and, where it may be another, what else was considered."""
    named = {cause.case_id: cause for cause in answer.causes}
    found = [_branch(node, named, frozenset()) for node in answer.differential.nodes]
    told = {id for branch in found for each in branch.walk() for id in each.ids}
    if answer.verdict not in OPEN:
        found = [branch for branch in found if branch.rank < 1_000]
    found += [_alone(cause, answer.verdict, language) for cause in answer.causes if cause.case_id not in told]
    return tuple(sorted(found, key=lambda branch: (branch.rank, -(branch.probability or 0.0))))


def _branch(node: DifferentialNode, named: Mapping[str, CauseView], said: frozenset[str]) -> Branch:
    chain = _chain(node, named)
    last = chain[-1]
    supports, contradicts, excluded = (
        _new((statement for each in reversed(chain) for statement in getattr(each, field)), said)
        for field in ("supports", "contradicts", "excluded_by")
    )
    said |= {statement.text for statement in (*supports, *contradicts, *excluded)}
    inner = [child for each in chain for child in each.nodes if child not in chain]
    cause = named.get(last.id)
    title = cause.title if cause is not None else last.title  # a model's own words for it
    return Branch(
        ids=tuple(each.id for each in chain),
        title=title,
        within=tuple(dict.fromkeys(each.title for each in chain if each.title != title)),
        probability=last.probability,
        cause=cause,
        supports=supports,
        contradicts=contradicts,
        excluded_by=excluded,
        missing=last.missing,
        state=last.state,
        nodes=tuple(_branch(child, named, said) for child in inner if child.probability >= LEAST or child.id in named),
    )


def _chain(node: DifferentialNode, named: Mapping[str, CauseView]) -> tuple[DifferentialNode, ...]:
    """The nodes down to the best of the answer's causes; the node alone where there is none below it."""
    paths = [path for path in _paths(node) if path[-1].id in named]
    return min(paths, key=lambda path: named[path[-1].id].rank, default=(node,))


def _paths(node: DifferentialNode) -> Iterator[tuple[DifferentialNode, ...]]:
    yield (node,)
    for child in node.nodes:
        yield from ((node, *path) for path in _paths(child))


def _new(statements: Iterable[StatementView], said: frozenset[str]) -> Statements:
    by_text = {statement.text: statement for statement in statements if statement.text not in said}
    return tuple(by_text.values())


def _alone(cause: CauseView, verdict: str, language: Language) -> Branch:
    """A cause that no page of the tree is about: a model's own, or one of another kind."""
    t = words(language)
    against = [name for name in cause.why if name in t["why_against"] and (name, verdict) != HEALTHY]
    return Branch(
        ids=(cause.case_id,),
        title=cause.title,
        cause=cause,
        supports=tuple(StatementView(text=t["why_for"][name]) for name in cause.why if name in t["why_for"]),
        contradicts=tuple(StatementView(text=t["why_against"][name]) for name in against),
    )
