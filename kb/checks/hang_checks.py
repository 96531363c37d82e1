"""One rule for each mechanism by which the ranks of a run are held apart: the verdict of `kb.hang.judge`."""

from __future__ import annotations

import re
from collections.abc import Callable

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import lines
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.hang.model import Frame, Kind, by_number
from trainmedic.kb.model.place import Span

_MOST_NAMED = 8


def _named(ranks: tuple[str, ...]) -> str:
    return ", ".join(ranks[:_MOST_NAMED]) + (" …" if len(ranks) > _MOST_NAMED else "") or "–"


def _shown(frame: Frame | None) -> str:
    return frame.text if frame is not None else "?"


def _check(kind: Kind) -> Callable[[Facts], Outcome]:
    def check(facts: Facts) -> Outcome:
        verdict = facts.verdict
        if verdict is None or verdict.kind is not kind:
            return NOT_SHOWN
        said = _said(facts, verdict.odd[0]) if kind is Kind.MISMATCH and verdict.odd else None
        return fires(
            *((said,) if said is not None else ()),
            *verdict.spans,
            said=f" ({said.text})" if said is not None else "",
            odd=_named(verdict.odd),
            waiting=_named(verdict.waiting),
            op=verdict.op or "?",
            doing=verdict.doing or "?",
            line=_shown(verdict.line),
            split=_shown(verdict.split),
            instead=_shown(verdict.instead),
            at=f", {verdict.line.text}" if verdict.line is not None else "",
        )

    return check


def _said(facts: Facts, rank: str) -> Span | None:
    """The last that a rank said of itself in a line of its own: ``rank 5: shard is empty, skipping the batch``."""
    named: re.Pattern[str] = re.compile(rf"^\[?(?i:rank)[ _]?{re.escape(rank)}\]?:? (?!\[)[^\n]{{4,200}}", re.MULTILINE)
    found = (span for text in (f"rank {rank}", f"rank{rank}") for span in lines(facts.evidence, text, named))
    return max(found, key=lambda span: span.line, default=None)


guarded, uneven, modality = _check(Kind.GUARDED), _check(Kind.UNEVEN), _check(Kind.MODALITY)
branch, mismatch = _check(Kind.BRANCH), _check(Kind.MISMATCH)
gone, transport = _check(Kind.GONE), _check(Kind.TRANSPORT)
_late = _check(Kind.LATE)


def late(facts: Facts) -> Outcome:
    """Fires where ranks wait for one that does something else; where that cannot be told, asks for what would."""
    verdict = facts.verdict
    if verdict is None and facts.evidence.has("hang") and (threads := facts.dumps.threads):
        spans = tuple(dict.fromkeys(thread.frames[-1].span for thread in threads))[:_MOST_NAMED]
        ranks = by_number({thread.who for thread in threads})[:_MOST_NAMED]
        return _asking(spans, ranks)
    if verdict is None or verdict.kind is not Kind.UNDECIDED or not verdict.wanted:
        return _late(facts)
    return _asking(verdict.spans, verdict.wanted)


def _asking(spans: tuple[Span, ...], ranks: tuple[str, ...]) -> Outcome:
    return Outcome(value=None, evidence=spans, missing=("stacks:" + "+".join(ranks),), user_provided=True)
