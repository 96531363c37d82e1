"""Observations of an accelerator's memory: messages of a failed allocation, nvidia-smi, memory snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.lazy import regex
from trainmedic.kb.memory.estimate import GIB
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.source import Piece

_UNITS = {"K": 1024, "M": 1024**2, "G": GIB, "T": 1024 * GIB}
_AMOUNT = r"([0-9.]{1,12} ?(?:[KMGT]i?B|bytes))"
_TRIED = regex(rf"[Tt]ried to allocate {_AMOUNT}")
_LONGEST = 900
_PARTS = {
    name: regex(pattern)
    for name, pattern in {
        "capacity": rf"total capac(?:i)?ty of {_AMOUNT}|{_AMOUNT} total capacity",
        "free": rf"of which {_AMOUNT} is free|{_AMOUNT} free",
        "in_use": rf"this process has {_AMOUNT} memory in use",
        "allocated": rf"{_AMOUNT} is allocated by PyTorch|{_AMOUNT} already allocated",
        "idle": rf"{_AMOUNT} is reserved by PyTorch but unallocated",
        "reserved": rf"{_AMOUNT} (?:reserved in total by PyTorch|cached)",
    }.items()
}
_OTHERS = regex(rf"Process \d{{1,9}} has {_AMOUNT} memory in use")
_DEVICE = regex(r"(?:GPU|NPU|MUSA|XPU) (\d{1,3})")
_ROW = regex(r"(?P<used>\d{1,7}) ?MiB ?/ ?(?P<total>\d{1,7}) ?MiB")
_CSV = regex(r"^[^\n]{0,200}memory\.used[^\n]{0,20}[^\n]{0,200}memory\.total[^\n]{0,200}$", re.MULTILINE)
_MIB = regex(r"(\d{1,7}) ?MiB")
_SNAPSHOT = regex(
    rf"^device \d{{1,3}}: {_AMOUNT} live in \d{{1,9}} blocks from (?P<site>[^\n]{{1,300}})$", re.MULTILINE
)
_MOST = 64
TITLE = "memory snapshot of PyTorch"
"""The first line of a snapshot as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One allocation that failed; sizes in bytes, None where the message does not say them.

    ``allocated`` is held by tensors, ``idle`` is reserved by the allocator and free, ``others`` is what other processes
    hold on the card.
    """

    span: Span
    tried: float
    capacity: float | None = None
    free: float | None = None
    in_use: float | None = None
    allocated: float | None = None
    idle: float | None = None
    others: float = 0.0

    @property
    def needed(self) -> float | None:
        """At least what the process needs on the card: what its tensors hold and what failed."""
        return None if self.allocated is None else self.allocated + self.tried

    @property
    def fragmented(self) -> bool:
        """Whether the idle blocks together would have held what failed."""
        return self.idle is not None and self.idle >= self.tried and self.idle > 0.05 * (self.capacity or GIB)

    @property
    def at_hand(self) -> float | None:
        """Bytes of the card that the process can have at most: all but what others hold."""
        if self.capacity is None:
            return None
        unseen = 0.0
        if not self.others and self.allocated is not None and self.free is not None and self.in_use is None:
            held = self.allocated + (self.idle or 0)
            unseen = max(0.0, self.capacity - self.free - held - 0.06 * self.capacity)
        return self.capacity - self.others - unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card in the output of nvidia-smi."""

    span: Span
    used: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the live tensors of a memory snapshot were made."""

    span: Span
    size: float
    where: str


def failures(evidence: Evidence) -> Iterator[Failure]:
    """Every failed allocation of an accelerator that is told with its size, in order, each message once."""
    seen: set[tuple[float, float | None]] = set()
    for piece in _pieces(evidence, "ried to allocate"):
        for match in _TRIED.finditer(piece.text):
            failure = _failure(piece, match)
            key = (failure.tried, failure.allocated)
            if key not in seen and len(seen) < _MOST and (failure.capacity or failure.allocated):
                seen.add(key)
                yield failure


def cards(evidence: Evidence) -> Iterator[Card]:
    for piece in _pieces(evidence, "MiB"):
        for match in _ROW.finditer(piece.text):
            yield Card(span=piece.span(*match.span()), used=_mib(match["used"]), total=_mib(match["total"]))
        for header in _CSV.finditer(piece.text) if "memory.used" in piece.text else ():
            yield from _listed(piece, header)


def sites(evidence: Evidence) -> Iterator[Site]:
    for piece in _pieces(evidence, TITLE):
        for match in _SNAPSHOT.finditer(piece.text) if piece.text.startswith(TITLE) else ():
            yield Site(span=piece.span(*match.span()), size=_bytes(match[1]), where=match["site"])


def shown(size: float) -> str:
    """``1,740 GiB``, ``7.65 GiB``, ``512 MiB``."""
    if size >= 999.5 * GIB:
        return f"{float(f'{size / GIB:.3g}'):,.0f} GiB"
    return f"{size / GIB:.3g} GiB" if size >= GIB else f"{size / 1024**2:.0f} MiB"


def _pieces(evidence: Evidence, mark: str) -> Iterator[Piece]:
    """The texts in which a mark stands."""
    return (Piece(source=each.name, text=each.text) for each in evidence.sources if mark in each.text)


def _failure(piece: Piece, match: re.Match[str]) -> Failure:
    text = piece.text[match.start() : match.start() + _LONGEST]
    following = _TRIED.search(text, match.end() - match.start())
    text = " ".join(text[: following.start() if following is not None else None].split())
    parts: dict[str, float] = {}
    for name, pattern in _PARTS.items():
        if (part := pattern.search(text)) is not None:
            parts[name] = _bytes(next(group for group in part.groups() if group))
    held = [_bytes(other[1]) for other in _OTHERS.finditer(text)]
    in_use = parts.get("in_use")
    reserved, allocated = parts.pop("reserved", None), parts.get("allocated")
    if in_use is None and held:  # without a sentence for this process, its own is the one that can hold its tensors
        in_use = min((size for size in held if size >= 0.98 * (allocated or 0)), default=max(held))
        held.remove(in_use)
    if reserved is not None and allocated is not None:
        parts["idle"] = max(0.0, reserved - allocated)
    end = piece.text.find("\n", match.start())
    span = piece.span(match.start(), end if end >= 0 else len(piece.text))
    return Failure(span=span, tried=_bytes(match[1]), others=sum(held), **{**parts, "in_use": in_use})


def _listed(piece: Piece, header: re.Match[str]) -> Iterator[Card]:
    """The rows below a header of ``nvidia-smi --query-gpu=… --format=csv``."""
    columns = [column.split("[")[0].strip() for column in header[0].split(",")]
    used, total = columns.index("memory.used"), columns.index("memory.total")
    at = header.end() + 1
    while at < len(piece.text):
        end = piece.text.find("\n", at)
        end = end if end >= 0 else len(piece.text)
        cells = piece.text[at:end].split(",")
        sizes = [_MIB.search(cell) for cell in cells] if len(cells) == len(columns) else []
        if not sizes or (held := sizes[used]) is None or (whole := sizes[total]) is None:
            return
        yield Card(span=piece.span(at, end), used=_mib(held[1]), total=_mib(whole[1]))
        at = end + 1


def _bytes(amount: str) -> float:
    number, unit = float(amount.rstrip("KMGTiBbytes ").rstrip(".") or 0), amount.lstrip("0123456789. ")
    return number * _UNITS.get(unit[:1], 1)


def _mib(number: str) -> float:
    return float(number) * 1024**2
