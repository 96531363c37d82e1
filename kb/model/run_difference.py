"""What differs between two runs, with texts in one language, as clients see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from trainmedic.kb.model.place import Span
from trainmedic.kb.serialization import NonFinite


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectView:
    """What a difference between two runs does. ``kind``: rule, defect, origin, default, removed, renamed.

    ``explains``: it produces a symptom that only the failing run shows.
    """

    kind: str
    id: str
    title: str
    fix: str = ""
    explains: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceView:
    """One thing that differs between two runs; ``kind``: run, setting (canonical), option (as written), package.

    A value is None on a side that does not have it or does not say. The sources say where a value without a place comes
    from, such as a default.
    """

    kind: str
    name: str
    good: str | None
    bad: str | None
    good_source: str = ""
    bad_source: str = ""
    good_place: Span | None = None
    bad_place: Span | None = None
    effects: tuple[EffectView, ...] = ()

    @property
    def explains(self) -> bool:
        return any(effect.explains for effect in self.effects)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveView:
    """The first step from which a metric differs for good; ``whole``: they differ from their first common step."""

    metric: str
    step: int
    good: Annotated[float, NonFinite()]
    bad: Annotated[float, NonFinite()]
    whole: bool
    good_place: Span
    bad_place: Span
