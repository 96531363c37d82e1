"""Collectives of each rank by process group and number, as the runtimes report them.

PyTorch's flight recorder (as JSON; pickles arrive as JSON), the watchdog's messages and NCCL's RAS report are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainmedic.kb.hang.model import Call, Gone, Reach
from trainmedic.kb.hang.stacks import frames_of, place, rank_of_name, records
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Source
from trainmedic.kb.parse.source import Piece, numbered

MARKS = (
    *('"pg_config"', "Watchdog caught collective", "ast enqueued", "is running collective", "exitcode"),
    *("launched up to operation", "communicator data from", "considered dead"),
)
MOST = 20_000
DEFAULT = "0"
"""The group of all ranks."""
SIZES_MAY_DIFFER = ("alltoall", "all_to_all", "send", "recv", "gather", "scatter", "object", "coalesced")
"""Operations whose input may be of another size on each rank, except for those that end in ``_base``."""
_CAUGHT = regex(
    r"\[Rank (?P<rank>[0-9]{1,5})\][^\n]{0,20}Watchdog caught collective operation timeout:\s{1,3}Work\w{1,20}"
    r"\(SeqNum=(?P<number>[0-9]{1,12}), OpTy\s?pe=(?P<op>\w{1,40})"
    r"(?:, TensorShape=\[(?P<shape>[0-9, ]{0,100})\]|, NumelIn=(?P<size>[0-9]{1,15}))?"
    r"[^)]{0,200}?Timeout\(ms\)=[0-9]{1,12}\)"
)
_STATUS = regex(
    r"\[PG (?:ID )?(?P<group>[\w.-]{1,40}) (?:PG GUID (?P<guid>[^\n\] ]{1,80}) |\([^)\n]{1,80}\) )?"
    r"Rank (?P<rank>[0-9]{1,5})\][^\n]{0,400}?[Ll]ast enqueued(?: NCCL)? work: (?P<enqueued>-?[0-9]{1,12}), "
    r"last completed(?: NCCL)? work: (?P<completed>-?[0-9]{1,12})"
)
_GLOBAL = regex(r"\[rank(?P<rank>[0-9]{1,5})\]:")
"""What the runtime puts before its lines. The rank in the line itself is that in the group."""
_RUNNING = regex(
    r"Rank (?P<rank>[0-9]{1,5}) is running collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(?P<number>[0-9]{1,12}), )?OpType=(?P<op>\w{1,40})"
    r"(?:, TensorShape=\[(?P<shape>[0-9, ]{0,100})\])?"
)
"""The check of TORCH_DISTRIBUTED_DEBUG=DETAIL, which stops at once."""
_LAUNCHED = regex(r"(?P<count>[0-9]{1,6}) ranks? ha(?:s|ve) launched up to operation (?P<number>[0-9]{1,15})")
_RAS_RANK = regex(r"^\s{1,20}Rank (?P<rank>[0-9]{1,6}) --[^\n]{0,200}")
_LOST = regex(r"[Mm]issing communicator data from [0-9]{1,6} ranks?|[0-9]{1,6} ranks? (?:is|are) (?:considered )?dead")
_FAILED = regex(
    r"rank\s{0,10}: (?P<rank>[0-9]{1,5}) \(local_rank: [0-9]{1,5}\)\s{1,20}"
    r"exitcode\s{0,10}: (?P<code>-(?!6\b|15\b)[0-9]{1,3})"
)
"""An exit by a signal, except for those by which the watchdog and the launcher end the ranks that waited."""


def read(source: Source) -> Iterator[Call | Reach | Gone | tuple[str, frozenset[str]]]:
    """Calls, positions and ends of ranks that one text tells of; a tuple names a group's ranks."""
    if not any(mark in source.text for mark in MARKS):
        return
    piece = Piece(source=source.name, text=source.text)
    if '"pg_config"' in piece.text:
        yield from _recorded(piece)
    yield from _watched(piece)
    yield from _ras(piece)
    for match in _RUNNING.finditer(piece.text):
        yield Call(
            who=str(int(match["rank"])),
            group="detail",
            number=int(match["number"] or 0),
            op=match["op"],
            size=_size(match["op"], match["shape"] or ""),
            span=piece.span(match.start(), match.end()),
        )
    for match in _FAILED.finditer(piece.text):
        span = piece.span(match.start("code"), match.end("code"))
        yield Gone(who=str(int(match["rank"])), why=f"exitcode {match['code']}", span=span)


def _size(op: str, size: str) -> str:
    name = op.lower()
    return "" if not name.endswith("_base") and any(word in name for word in SIZES_MAY_DIFFER) else size


def _watched(piece: Piece) -> Iterator[Call | Reach]:
    groups: dict[tuple[str, int], str] = {}
    reached: dict[tuple[str, str], Reach] = {}
    for match in _STATUS.finditer(piece.text):
        who, group = _who(piece.text, match), match["guid"] or match["group"]
        enqueued, completed = int(match["enqueued"]), int(match["completed"])
        if enqueued < 0:
            continue
        groups.setdefault((who, completed + 1), group)
        span = piece.span(match.start("enqueued"), match.end("completed"))
        reach = Reach(who=who, group=group, enqueued=enqueued, completed=completed, span=span)
        reached.setdefault((who, group), reach)
    yield from reached.values()
    seen = set[tuple[str, str]]()
    for match in _CAUGHT.finditer(piece.text):
        who, number = _who(piece.text, match), int(match["number"])
        unnamed = DEFAULT if who == str(int(match["rank"])) else f"unnamed, {match['op']}"
        group = groups.get((who, number)) or next((g for (_, n), g in groups.items() if n == number), unnamed)
        if (who, group) in seen or len(seen) > MOST:
            continue
        seen.add((who, group))
        yield Call(
            who=who,
            group=group,
            number=number,
            op=match["op"],
            size=_size(match["op"], match["shape"] or match["size"] or ""),
            span=piece.span(match.start(), match.end()),
        )


def _who(text: str, match: re.Match[str]) -> str:
    """The rank in the job, where the runtime's prefix states it."""
    before = _GLOBAL.findall(text, text.rfind("\n", 0, match.start()) + 1, match.start())
    return str(int(before[-1] if before else match["rank"]))


def _ras(piece: Piece) -> Iterator[Reach | Gone]:
    """Ranks that RAS names: it lists the few, and counts the many."""
    number, lost, counted = -1, False, list[int]()
    few: list[Reach] = []
    for at, line in numbered(piece.text):
        launched, rank = _LAUNCHED.search(line), _RAS_RANK.match(line)
        if launched is not None:
            number, lost = int(launched["number"]), False
            counted.append(number)
        elif _LOST.search(line) is not None:
            number, lost = -1, True
        elif rank is not None and (lost or number >= 0):
            span = piece.span(at + rank.start("rank") - len("Rank "), at + len(line))
            if lost:
                yield Gone(who=rank["rank"], why="no data of its communicator", span=span)
            else:
                few.append(Reach(who=rank["rank"], group="ras", enqueued=number, span=span))
    yield from few
    if few:  # the many are counted, not named
        number = next((number for number in counted if number != few[0].enqueued), few[0].enqueued)
        yield Reach(who="", group="ras", enqueued=number, span=place(piece, f"operation {number}", 0))


def _recorded(piece: Piece) -> Iterator[Call | Reach | tuple[str, frozenset[str]]]:
    """The dumps of one text, which may be several one after the other."""
    found = 0
    for at, dump in records(piece.text, "{"):
        if isinstance(dump, dict) and isinstance(dump.get("entries"), list):
            yield from _dump(dump, piece, at, str(found))
            found += 1


def _dump(
    dump: Mapping[str, Any], piece: Piece, at: int, count: str
) -> Iterator[Call | Reach | tuple[str, frozenset[str]]]:
    who = str(dump.get("rank") if isinstance(dump.get("rank"), int) else rank_of_name(piece.source) or count)
    for name, config in _table(dump, "pg_config").items():
        if isinstance(config, dict):
            ranks = frozenset(_numbers(config.get("ranks")))
            yield str(config.get("name") or name or "0"), ranks
    last: dict[str, int] = {}
    for entry in dump["entries"][-MOST:]:
        call = _entry(entry, who, piece, at) if isinstance(entry, dict) else None
        if call is not None:
            at = max(at, piece.text.find('"collective_seq_id"', at) + 1)  # entries stand in the order of the list
            last[call.group] = max(last.get(call.group, 0), call.number)
            yield call
    for group, status in _table(dump, "pg_status").items():
        if isinstance(status, dict) and str(status.get("last_enqueued_collective", "")).isdecimal():
            done = str(status.get("last_completed_collective", ""))
            yield Reach(
                who=who,
                group=str(group),
                enqueued=int(status["last_enqueued_collective"]),
                completed=int(done) if done.isdecimal() else None,
                span=place(piece, '"last_enqueued_collective"', 0),
            )


def _table(dump: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = dump.get(key)
    return value if isinstance(value, dict) else {}


def _entry(entry: Mapping[str, Any], who: str, piece: Piece, at: int) -> Call | None:
    number, group = entry.get("collective_seq_id"), entry.get("process_group")
    if not isinstance(number, int) or entry.get("is_p2p"):
        return None
    backend, _, name = str(entry.get("profiling_name") or "").rpartition(":")
    state, frames, sizes = str(entry.get("state") or ""), entry.get("frames"), entry.get("input_sizes")
    done = state == "completed" or bool(entry.get("retired"))
    return Call(
        who=who,
        group=str(group[0] if isinstance(group, (list, tuple)) and group else group or "0"),
        number=number,
        op=name,
        size=_size(name, json.dumps(sizes)) if sizes else "",
        started=done or state == "started" or (False if backend == "nccl" else None),
        done=done,
        frames=frames_of(frames, piece, at) if isinstance(frames, list) and not done else (),
        span=place(piece, '"collective_seq_id"', at),
    )


def _numbers(value: object) -> Iterator[str]:
    items = value if isinstance(value, list) else str(value or "").strip("[]").split(",")
    return (str(int(str(item))) for item in items if str(item).strip().isdecimal())
