"""Which ranks report a collective that timed out, and which one is missing among them."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import lines
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.engine.values import is_number
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span

_WORK = regex(
    r"\[Rank (?P<rank>[0-9]{1,5})\][^\n]{0,20}Watchdog caught collective operation timeout"
    r": WorkNCCL\(SeqNum=(?P<seq>[0-9]{1,12}), OpType=(?P<op>\w{1,40})[^\n]{0,200}?Timeout\(ms\)=(?P<limit>[0-9]{1,12})"
)
MOST_REPORTS = 2000
LEAST_RANKS = 2
"""Reports of so many ranks are needed before the absence of another says anything."""


def check(facts: Facts) -> Outcome:
    """Fires where all ranks but one report the same collective; the silent one is where to look."""
    reports: dict[int, tuple[Span, re.Match[str]]] = {}
    for span in lines(facts.evidence, "Watchdog caught collective operation timeout", _WORK, MOST_REPORTS):
        match = _WORK.search(span.text)
        if match is not None:
            reports.setdefault(int(match["rank"]), (span, match))
    missing = _missing(set(reports), facts)
    if missing is None or len({match["seq"] for _, match in reports.values()}) != 1:
        return NOT_SHOWN
    span, match = next(iter(reports.values()))
    return fires(
        *(span for span, _ in reports.values()),
        missing=missing,
        ranks=", ".join(map(str, sorted(reports))),
        op=match["op"],
        seq=match["seq"],
        seconds=int(match["limit"]) // 1000,
    )


def _missing(ranks: set[int], facts: Facts) -> int | None:
    """The one rank that says nothing, among those up to the highest that speaks or the number of processes known."""
    if len(ranks) < LEAST_RANKS:
        return None
    world = facts.name("world_size").value
    count = int(world) if is_number(world) and world > max(ranks) else max(ranks) + 1
    silent = set(range(count)) - ranks
    return silent.pop() if len(silent) == 1 else None
