"""Evidence of hangs: call stacks, collectives by group and number, ranks that are gone, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span

ALL = ("*",)
"""Asked for where it is not known which ranks there are."""
MOST_ASKED = 4
"""So many ranks are asked for at most."""
MOST_SHOWN = 8
"""So many ranks of each side are evidence."""
_NUMBER = regex("[0-9]+")


def by_number(names: Iterable[str]) -> tuple[str, ...]:
    """Ranks in their order: ``2`` before ``10``; processes whose rank is not known are ``pid 812``."""
    return tuple(sorted(names, key=lambda name: (not name.isdecimal(), int((_NUMBER.findall(name) or ["0"])[0]), name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One call: where execution stands in ``function``."""

    file: str
    line: int
    function: str
    span: Span

    @property
    def key(self) -> tuple[str, int, str]:
        return (self.file, self.line, self.function)

    @property
    def text(self) -> str:
        """``train.py:41 in main``, with two folders of the path at most."""
        return f"{'/'.join(self.file.replace(chr(92), '/').split('/')[-3:])}:{self.line} in {self.function}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """The stack of one thread, outermost call first. ``sample`` counts the dumps of the same process."""

    who: str
    name: str
    frames: tuple[Frame, ...]
    sample: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One collective of one rank. ``size`` is its input as written, empty where it may differ between ranks."""

    who: str
    group: str
    number: int
    op: str
    span: Span
    size: str = ""
    started: bool | None = None
    done: bool = False
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a rank has come in a group: the last collective that it enqueued, and the last that completed."""

    who: str
    group: str
    enqueued: int
    span: Span
    completed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A rank whose process ended or cannot be reached."""

    who: str
    why: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumps:
    """All hang evidence of an incident. ``members`` are the ranks of a group; ``expected`` all ranks of the job."""

    threads: tuple[Thread, ...] = ()
    calls: tuple[Call, ...] = ()
    reaches: tuple[Reach, ...] = ()
    gone: tuple[Gone, ...] = ()
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    expected: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        return not (self.threads or self.calls or self.reaches or self.gone)


class Kind(StrEnum):
    """The reason why the ranks stand apart."""

    GUARDED = "collective-on-some-ranks"
    UNEVEN = "ran-out-of-batches"
    MODALITY = "modality-skipped"
    BRANCH = "branch-differs"
    MISMATCH = "collectives-differ"
    LATE = "one-rank-late"
    GONE = "rank-gone"
    TRANSPORT = "transport-stands-still"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``odd``: the ranks to look at; ``waiting``: those that wait for them, in ``op``.

    ``line`` is the deepest call of the odd rank that is not the communication itself; ``split`` is where its way leaves
    theirs, ``instead`` where they went. ``wanted``: ranks whose evidence would decide. Not ``sure``: nothing
    but the time-outs of the ranks shows it.
    """

    kind: Kind
    odd: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    op: str = ""
    doing: str = ""
    line: Frame | None = None
    split: Frame | None = None
    instead: Frame | None = None
    wanted: tuple[str, ...] = ()
    sure: bool = True
    spans: tuple[Span, ...] = ()
