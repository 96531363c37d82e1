"""The verdict over all hang evidence: who is odd, what the others wait for, and what holds them apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmedic.kb.hang import ledger, stacks
from trainmedic.kb.hang.booked import booked
from trainmedic.kb.hang.guards import Around, around
from trainmedic.kb.hang.model import (
    ALL,
    MOST_ASKED,
    MOST_SHOWN,
    Call,
    Dumps,
    Frame,
    Gone,
    Kind,
    Reach,
    Thread,
    Verdict,
    by_number,
)
from trainmedic.kb.hang.where import Place, about, place_of
from trainmedic.kb.model.place import Source, Span


def read(sources: Iterable[Source], world: int | None = None) -> Dumps:
    """All hang evidence in some texts. ``world``: the number of ranks, where something else states it."""
    threads: list[Thread] = []
    calls: list[Call] = []
    reaches: list[Reach] = []
    gone: list[Gone] = []
    members: dict[str, frozenset[str]] = {}
    expected = world or 0
    for source in sources:
        found, lost, stated = stacks.read(source)
        threads += found
        gone += lost
        expected = max(expected, stated)
        for item in ledger.read(source):
            if isinstance(item, Call):
                calls.append(item)
            elif isinstance(item, Reach):
                reaches.append(item)
            elif isinstance(item, Gone):
                gone.append(item)
            else:
                members[item[0]] = members.get(item[0], frozenset()) | item[1]
    ranks = frozenset(map(str, range(expected))) if expected else frozenset()
    return Dumps(
        threads=tuple(_resampled(threads)),
        calls=tuple(calls),
        reaches=tuple(reaches),
        gone=tuple(gone),
        members=members,
        expected=ranks.union(*members.values()),
    )


def _resampled(threads: Sequence[Thread]) -> Iterable[Thread]:
    """Samples are counted in each text; a process in a second text was dumped again."""
    offsets: dict[tuple[str, str | None], int] = {}
    most: dict[str, int] = defaultdict(int)
    for thread in threads:
        text = thread.frames[0].span.attachment if thread.frames else None
        key = (thread.who, text)
        if key not in offsets:
            offsets[key] = most[thread.who]
        number = offsets[key] + thread.sample
        most[thread.who] = max(most[thread.who], number + 1)
        if thread.frames:
            yield replace(thread, sample=number)


def judge(dumps: Dumps, sources: Sequence[Source] = ()) -> Verdict | None:
    """The verdict; None where nothing is held up: no evidence of it, or every rank computes or has moved on.

    ``sources`` may hold the scripts that the stacks name: the conditions around a line tell most.
    """
    if dumps.empty:
        return None
    places, moved = _places(dumps)
    if moved and not dumps.calls and not dumps.reaches:
        return None
    of_calls = booked(dumps)
    if of_calls is not None and of_calls.kind is not Kind.UNDECIDED:
        return _with_stacks(of_calls, places, sources, dumps)
    return _lost(dumps, places) or _compared(places, dumps, sources) or of_calls


# --- stacks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stand:
    """Where one rank stands. ``samples``: how many dumps of it there are, all alike where `_places` says nothing."""

    place: Place
    frames: tuple[Frame, ...]
    samples: int

    @property
    def key(self) -> tuple[object, ...]:
        return (self.place.doing if self.place.waits else "", *(frame.key for frame in self.place.path))


def _places(dumps: Dumps) -> tuple[dict[str, _Stand], bool]:
    """Where each rank stands, by its last dump; and whether a rank that waited went on between dumps."""
    found: dict[str, list[tuple[Frame, ...]]] = defaultdict(list)
    for (who, _), frames in sorted(stacks.chains(dumps.threads).items()):
        found[who].append(frames)
    last = {call.who: call for call in dumps.calls if not call.done and call.frames}
    for who, call in last.items():
        found.setdefault(who, [call.frames])
    stands, moved = {}, False
    for who in by_number(found):
        places = [place_of(frames) for frames in found[who]]
        stands[who] = _Stand(place=places[-1], frames=found[who][-1], samples=len(places))
        keys = {tuple(frame.key for frame in place.path) for place in places if place.waits}
        moved = moved or len(keys) > 1 or (len(places) > 1 and len({place.waits for place in places}) > 1)
    return stands, moved


def _compared(places: Mapping[str, _Stand], dumps: Dumps, sources: Sequence[Source]) -> Verdict | None:
    waiting = [who for who, stand in places.items() if stand.place.waits]
    busy = [who for who, stand in places.items() if not stand.place.waits]
    if not waiting:
        return None
    if busy:
        return _late(places, busy, waiting, sources) if len(busy) <= len(waiting) else None
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for who in waiting:
        groups[places[who].key].append(who)
    if len(groups) == 1:
        return _together(places, waiting, by_number(dumps.expected - places.keys()))
    return _apart(places, sorted(groups.values(), key=lambda group: (len(group), waiting.index(group[0]))), sources)


def _op(places: Mapping[str, _Stand], ranks: Sequence[str]) -> str:
    ops = Counter(places[who].place.op or places[who].place.doing for who in ranks)
    return ops.most_common(1)[0][0] if ops else ""


def _spans(places: Mapping[str, _Stand], ranks: Sequence[str]) -> tuple[Span, ...]:
    return tuple(places[who].place.path[-1].span for who in ranks[:MOST_SHOWN] if who in places)


def _together(places: Mapping[str, _Stand], waiting: Sequence[str], unseen: Sequence[str]) -> Verdict:
    """All ranks that are seen stand in the same collective. One dump of a run that goes on looks so too."""
    again = len(waiting) < 2 or any(places[who].samples < 2 for who in waiting)
    wanted = tuple(unseen or (by_number(waiting) if again else ()))[:MOST_ASKED]
    return Verdict(
        kind=Kind.UNDECIDED if wanted else Kind.TRANSPORT,
        waiting=by_number(waiting),
        op=_op(places, waiting),
        wanted=ALL if len(places) == 1 and not unseen else wanted,
        spans=_spans(places, waiting),
        line=places[waiting[0]].place.path[-1],
    )


def _late(
    places: Mapping[str, _Stand], busy: Sequence[str], waiting: Sequence[str], sources: Sequence[Source]
) -> Verdict:
    """Some ranks do something else while the others wait for them."""
    stand = places[busy[0]]
    ways = _split(stand, places[waiting[0]])
    uneven = stand.place.doing == "finish" or _ended(stand, *ways, sources)
    return _blaming(places, Kind.UNEVEN if uneven else Kind.LATE, busy, waiting, _op(places, waiting), ways)


def _blaming(
    places: Mapping[str, _Stand], kind: Kind, odd: Sequence[str], waiting: Sequence[str], op: str, ways: _Ways
) -> Verdict:
    place = places[odd[0]].place
    return Verdict(
        kind=kind,
        odd=by_number(odd),
        waiting=by_number(waiting),
        op=op,
        doing=place.op or place.doing,
        line=_deepest(place),
        split=ways[0],
        instead=ways[1],
        spans=(*_spans(places, by_number(odd)), *_spans(places, by_number(waiting))),
    )


_Ways = tuple[Frame | None, Frame | None]
_LIBRARY = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen", "/torch/", "/numpy/")


def _deepest(place: Place) -> Frame:
    """The deepest call of the user's or a framework's code; of the library code below it no one learns a cause."""
    own = [frame for frame in place.path if not any(part in "/" + frame.file for part in _LIBRARY)]
    return own[-1] if own else place.path[-1]


def _split(odd: _Stand, others: _Stand) -> _Ways:
    """The outermost calls in which two ways differ."""
    for mine, theirs in zip(odd.place.path, others.place.path, strict=False):
        if mine.key != theirs.key:
            return mine, theirs
    at = min(len(odd.place.path), len(others.place.path))  # one way goes on where the other ends
    return (*odd.place.path[at:], odd.place.path[-1])[0], (*others.place.path[at:], others.place.path[-1])[0]


def _ended(stand: _Stand, split: Frame | None, instead: Frame | None, sources: Sequence[Source]) -> bool:
    """Whether a rank has left the loop over the batches that the others are still in."""
    if split is None or instead is None or split.file != instead.file or split.function != instead.function:
        return split is not None and about(stand.place.path[-3:], "ended")
    mine, theirs = around(sources, split.file, split.line), around(sources, instead.file, instead.line)
    if mine.known and theirs.known:
        return len(mine.loops) < len(theirs.loops) and split.line > instead.line
    return split.line > instead.line and about(_from(stand, split), "ended")


def _from(stand: _Stand, split: Frame | None) -> tuple[Frame, ...]:
    """The calls of a rank below the split; the function that both are in says nothing."""
    path = stand.place.path
    at = next((index for index, frame in enumerate(path) if frame is split), len(path) - 1)
    return path[at + 1 :] or path[at:]


def _apart(places: Mapping[str, _Stand], groups: Sequence[Sequence[str]], sources: Sequence[Source]) -> Verdict:
    """The ranks wait in different collectives. The smaller group is odd; of two alike the one that a cause fits."""
    others = groups[-1]
    if len(groups[0]) < len(others):
        return _pair(places, groups[0], others, sources)[0]
    ways = [_pair(places, one, other, sources) for one, other in ((groups[0], others), (others, groups[0]))]
    best = max(ways, key=lambda way: way[1])[0]
    if best.kind is Kind.MISMATCH:
        return replace(best, odd=by_number((*groups[0], *others)), waiting=())
    return best


def _pair(
    places: Mapping[str, _Stand], group: Sequence[str], others: Sequence[str], sources: Sequence[Source]
) -> tuple[Verdict, int]:
    """The verdict where this group is odd, and how well that fits."""
    odd, other = places[group[0]], places[others[0]]
    ways = _split(odd, other)
    waiting = [who for who in places if who not in group]
    kind, fit = _mechanism(odd, other, *ways, sources)
    return _blaming(places, kind, group, waiting, _op(places, others), ways), fit


def _mechanism(
    odd: _Stand, other: _Stand, split: Frame | None, instead: Frame | None, sources: Sequence[Source]
) -> tuple[Kind, int]:
    """What holds two ways apart. It fits better the other way round where the odd rank is in what the others skip."""
    mine, theirs = _from(odd, split), _from(other, instead)
    here = around(sources, split.file, split.line) if split is not None else Around()
    there = around(sources, instead.file, instead.line) if instead is not None else Around()
    own = [test for test in here.conditions if test not in there.conditions]
    skipped = [test for test in there.conditions if test not in here.conditions]
    if about((), "rank", own):
        return Kind.GUARDED, 4
    if _ended(odd, split, instead, sources):
        return Kind.UNEVEN, 4
    for topic, kind in (("modality", Kind.MODALITY), ("branch", Kind.BRANCH)):
        if kind is Kind.BRANCH and not (own or skipped) and about(mine, "guarded") and not about(theirs, "guarded"):
            return Kind.GUARDED, 4
        if about(theirs, topic, skipped) or (kind is Kind.BRANCH and skipped):
            return kind, 3 if not about(mine, topic, own) else 2
        if about(mine, topic, own) or (kind is Kind.BRANCH and own):
            return kind, 1
    return Kind.MISMATCH, 0


def _lost(dumps: Dumps, places: Mapping[str, _Stand]) -> Verdict | None:
    """A rank that is gone while others still wait; without anyone who waits it is not a hang."""
    gone = {each.who: each for each in dumps.gone}
    waiting = [who for who, stand in places.items() if stand.place.waits and who not in gone]
    waiting += [call.who for call in dumps.calls if not call.done and call.who not in gone]
    if not gone or not waiting:
        return None
    first = gone[by_number(gone)[0]]
    return Verdict(
        kind=Kind.GONE,
        odd=by_number(gone),
        waiting=by_number(set(waiting)),
        op=_op(places, [who for who in waiting if who in places]) or next((c.op for c in dumps.calls), ""),
        doing=first.why,
        spans=(*(gone[who].span for who in by_number(gone)[:MOST_SHOWN]), *_spans(places, by_number(waiting))),
    )


def _with_stacks(of_calls: Verdict, places: Mapping[str, _Stand], sources: Sequence[Source], dumps: Dumps) -> Verdict:
    """Stacks say what the collectives cannot: what the odd rank does, and in which line."""
    lost = _lost(dumps, places)
    if of_calls.kind is Kind.TRANSPORT:
        recorded = all(call.started is not None for call in dumps.calls if not call.done)
        return replace(of_calls, sure=recorded or set(of_calls.waiting) <= places.keys())
    if lost is not None and set(lost.odd) & set(of_calls.odd):
        return lost
    if not of_calls.waiting and (told := _compared(places, dumps, sources)) is not None:
        return told
    odd = [who for who in of_calls.odd if who in places]
    others = [who for who in places if who not in of_calls.odd]
    if not odd or not others:
        return of_calls
    stand = places[odd[0]]
    if not stand.place.waits:
        told = _late(places, odd, others, sources)
    else:
        told = _pair(places, odd, others, sources)[0]
        if told.kind is Kind.MISMATCH and of_calls.kind is not Kind.MISMATCH:
            told = replace(told, kind=of_calls.kind)
    return replace(told, odd=of_calls.odd, waiting=of_calls.waiting or told.waiting, op=of_calls.op)
