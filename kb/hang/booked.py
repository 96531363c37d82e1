"""The verdict of the collectives alone: aligned by process group and number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from trainmedic.kb.hang.ledger import DEFAULT
from trainmedic.kb.hang.model import ALL, MOST_ASKED, MOST_SHOWN, Call, Dumps, Kind, Reach, Verdict, by_number
from trainmedic.kb.model.place import Span

NEAR = 8
"""Collectives that ranks of one group are apart at most; what lies further apart are groups that no one named."""
_WORST_FIRST = (Kind.GONE, Kind.MISMATCH, Kind.LATE, Kind.TRANSPORT, Kind.UNDECIDED)


def booked(dumps: Dumps) -> Verdict | None:
    """The verdict of the group at the root: an odd rank that itself waits in another group is not to blame."""
    groups = sorted({*(call.group for call in dumps.calls), *(reach.group for reach in dumps.reaches)})
    found = [verdict for group in groups if (verdict := _in_group(group, dumps)) is not None]
    roots = [
        verdict
        for verdict in found
        if not any(set(verdict.odd) & set(other.waiting) for other in found if other is not verdict)
    ]
    if found and not roots:  # the ranks wait for one another in different groups
        first = found[0]
        return replace(first, kind=Kind.MISMATCH, odd=by_number({who for each in found for who in each.odd}))
    return min(roots, key=lambda verdict: _WORST_FIRST.index(verdict.kind), default=None)


def _in_group(group: str, dumps: Dumps) -> Verdict | None:
    calls: dict[str, dict[int, Call]] = defaultdict(dict)
    for call in dumps.calls:
        if call.group == group:
            calls[call.who][call.number] = call
    reached: dict[str, Reach] = {reach.who: reach for reach in dumps.reaches if reach.group == group}
    if group == "ras":
        return _behind(reached)
    pending = {
        who: min((call for call in numbered.values() if not call.done), key=lambda call: call.number, default=None)
        for who, numbered in calls.items()
    }
    stuck = {who: call for who, call in pending.items() if call is not None}
    if not stuck:
        return _behind(reached)
    number = Counter(call.number for call in stuck.values()).most_common(1)[0][0]
    if any(abs(call.number - number) > NEAR for call in stuck.values()):
        return Verdict(kind=Kind.UNDECIDED, wanted=by_number(stuck)[:MOST_ASKED], spans=_called(stuck))
    at = {who: numbered[number] for who, numbered in calls.items() if number in numbered and who in stuck}
    everyone = dumps.members.get(group) or frozenset()
    whole = group == DEFAULT or group.endswith("(default_pg)") or len({c.group for c in dumps.calls}) == 1
    seen = calls.keys() | reached.keys()
    gone = {each.who for each in dumps.gone if whole or each.who in everyone} - at.keys()
    missing = [
        who
        for who in seen - stuck.keys()
        if max([*calls.get(who, {}), reached[who].enqueued if who in reached else 0]) < number
    ]
    if gone or missing:
        return _ledger_verdict(Kind.GONE if gone else Kind.LATE, by_number(gone or missing), at, reached)
    differing = _unlike(stuck, number)
    if 2 * len(differing) == len(stuck):  # no one is more usual than the others
        differing = stuck
    if differing:
        return _ledger_verdict(Kind.MISMATCH, by_number(differing), {**at, **differing}, reached)
    absent = (everyone or (_up_to(seen, dumps.expected) if whole else frozenset())) - at.keys()
    # A rank without a time-out report did not wait; one without a flight recorder's file may just not have been sent.
    if len(absent) == 1 and len(at) > 1 and not everyone and not reached.keys() & absent:
        return _ledger_verdict(Kind.LATE, by_number(absent), at, reached)
    if absent or len(at) < 2 or not (everyone or dumps.expected):
        wanted = by_number(absent)[:MOST_ASKED] or ALL
        return replace(_ledger_verdict(Kind.UNDECIDED, (), at, reached), wanted=wanted)
    behind = [who for who, call in at.items() if call.started is False]
    if behind and len(behind) < len(at):
        return _ledger_verdict(Kind.LATE, by_number(behind), at, reached)
    return _ledger_verdict(Kind.TRANSPORT, (), at, reached)


def _up_to(seen: Iterable[str], expected: frozenset[str]) -> frozenset[str]:
    """All ranks there should be: those that are known, or those up to the highest that is seen."""
    numbers = [int(who) for who in seen if who.isdecimal()]
    return expected or frozenset(map(str, range(max(numbers, default=-1) + 1)))


def _unlike(stuck: Mapping[str, Call], number: int) -> Mapping[str, Call]:
    """The calls of another number, operation or size than most."""
    common = Counter((call.op, call.size) for call in stuck.values() if call.number == number).most_common(1)[0][0]
    return {who: call for who, call in stuck.items() if call.number != number or (call.op, call.size) != common}


def _behind(reached: Mapping[str, Reach]) -> Verdict | None:
    """Ranks that enqueued less than the others. RAS names only the few, which may also be the ones ahead."""
    most = max((reach.enqueued for reach in reached.values()), default=0)
    behind = by_number(who for who, reach in reached.items() if reach.enqueued < most)
    ahead = by_number(who for who in reached if who and who not in behind)
    if not behind or len(behind) >= max(2, len(reached)):
        return None
    least = min(reach.enqueued for reach in reached.values())
    unnamed = behind == ("",)
    return Verdict(
        kind=Kind.MISMATCH if unnamed else Kind.LATE,
        odd=ahead if unnamed else behind,
        waiting=() if unnamed else ahead,
        doing=f"#{most}" if unnamed else f"#{least}",
        op=f"#{least}" if unnamed else f"#{most}",
        spans=tuple(reached[who].span for who in (*behind[:MOST_SHOWN], *ahead[:MOST_SHOWN])),
    )


def _ledger_verdict(kind: Kind, odd: Sequence[str], at: Mapping[str, Call], reached: Mapping[str, Reach]) -> Verdict:
    waiting = [who for who in by_number(at) if who not in odd]
    usual = at[waiting[0]] if waiting else next(iter(at.values()))
    shown = [reached[who].span for who in odd if who in reached] + [at[who].span for who in odd if who in at]
    return Verdict(
        kind=kind,
        odd=tuple(odd),
        waiting=tuple(waiting),
        op=f"{usual.op} #{usual.number}",
        doing=", ".join(sorted({_shown(at[who], usual) for who in odd if who in at})),
        spans=(*shown[:MOST_SHOWN], *(at[who].span for who in waiting[:MOST_SHOWN])),
    )


def _shown(call: Call, usual: Call) -> str:
    """A call with its own number where that differs from the others', else with what it was called with."""
    return f"{call.op} #{call.number}" if call.number != usual.number else f"{call.op} {call.size}".strip()


def _called(calls: Mapping[str, Call]) -> tuple[Span, ...]:
    return tuple(calls[who].span for who in by_number(calls)[:MOST_SHOWN])
