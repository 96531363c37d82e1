"""The evidence as a table: ranks by collectives, and where each rank stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trainmedic.kb.hang import stacks
from trainmedic.kb.hang.model import Dumps, by_number
from trainmedic.kb.hang.where import place_of

MOST_ROWS = 64
MOST_COLUMNS = 4


def table(dumps: Dumps) -> str:
    """Fixed-width text. A cell is a collective with ``done`` or ``waits``, or ``not reached``; empty if no one
    says. Nothing for a single rank."""
    calls = {(call.who, call.group, call.number): call for call in dumps.calls}
    reached = {(reach.who, reach.group): reach for reach in dumps.reaches if reach.who}
    pending = Counter((call.group, call.number) for call in dumps.calls if not call.done)
    columns = sorted(column for column, _ in pending.most_common(MOST_COLUMNS))
    last = {who: frames for (who, _), frames in sorted(stacks.chains(dumps.threads).items())}
    gone = {each.who: each.why for each in dumps.gone}
    ranks = by_number({*last, *gone, *(who for who, *_ in calls), *(who for who, _ in reached)})[:MOST_ROWS]

    def cell(who: str, group: str, number: int) -> str:
        call, reach = calls.get((who, group, number)), reached.get((who, group))
        if call is not None:
            return f"{call.op} {call.size} {'done' if call.done else 'waits'}".replace("  ", " ")
        return "not reached" if reach is not None and reach.enqueued < number else ""

    def stands(who: str) -> str:
        place = place_of(last[who]) if who in last else None
        where = f"{place.op or place.doing}: {place.path[-1].text}" if place is not None and place.path else ""
        return gone.get(who, where)

    rows = [["rank", *(f"group {group} #{number}" for group, number in columns), "stands at"]]
    rows += [[who, *(cell(who, *column) for column in columns), stands(who)] for who in ranks]
    return _aligned(rows) if len(ranks) > 1 else ""


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    kept = [index for index in range(len(rows[0])) if any(row[index] for row in rows[1:])]
    widths = {index: max(len(row[index]) for row in rows) for index in kept}
    return "\n".join(" | ".join(row[index].ljust(widths[index]) for index in kept).rstrip() for row in rows)
