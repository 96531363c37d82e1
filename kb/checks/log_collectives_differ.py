"""Which ranks wait in another collective than the rest, and what the odd ones printed last."""

from __future__ import annotations

import re
from collections import defaultdict

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first, lines
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span

_WORK = regex(
    r"(?:\[rank(?P<process>[0-9]{1,5})\][^\n]{0,120})?\[Rank (?P<rank>[0-9]{1,5})\][^\n]{0,20}Watchdog caught "
    r"collective operation timeout: WorkNCCL\(SeqNum=(?P<seq>[0-9]{1,12}), OpType=(?P<op>\w{1,40})"
)
MOST_REPORTS = 2000
NEAR = 8
"""Collectives of one group that the ranks are apart at most. Groups count for themselves: theirs lie further apart."""
Work = tuple[int, str]


def check(facts: Facts) -> Outcome:
    """Fires where ranks of one group report different collectives."""
    reports: dict[int, tuple[Work, Span]] = {}
    for span in lines(facts.evidence, "Watchdog caught collective operation timeout", _WORK, MOST_REPORTS):
        match = _WORK.search(span.text)
        if match is None or match["process"] not in (None, match["rank"]):
            continue  # numbered within a group of its own
        reports.setdefault(int(match["rank"]), ((int(match["seq"]), match["op"]), span))
    by_work: dict[Work, list[int]] = defaultdict(list)
    for rank, (work, _) in sorted(reports.items()):
        by_work[work].append(rank)
    numbers = [seq for seq, _ in by_work]
    if len(by_work) < 2 or max(numbers) - min(numbers) > NEAR:
        return NOT_SHOWN
    odd = min(by_work.values(), key=lambda ranks: (len(ranks), reports[ranks[0]][0]))
    said = _said(facts, odd[0])
    return fires(
        *((said,) if said is not None else ()),
        *(reports[ranks[0]][1] for ranks in by_work.values()),
        odd=", ".join(map(str, odd)),
        side_by_side="; ".join(
            f"{', '.join(map(str, ranks))}: {op} {seq}" for (seq, op), ranks in sorted(by_work.items())
        ),
    )


def _said(facts: Facts, rank: int) -> Span | None:
    """What a rank said of itself in a line of its own."""
    named: re.Pattern[str] = re.compile(rf"^\[?(?i:rank)[ _]?{rank}\]?:? (?!\[)[^\n]{{4,200}}", re.MULTILINE)
    found = [span for text in (f"rank {rank}", f"rank{rank}") if (span := first(facts.evidence, text, named))]
    return max(found, key=lambda span: span.line, default=None)
