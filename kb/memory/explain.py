"""Observed GPU memory compared with the prediction from the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.memory_places import out_of_memory
from trainmedic.kb.memory.changes import Remedy, fits, remedies
from trainmedic.kb.memory.estimate import Estimate, Plan, Range, estimate, logit_sizes
from trainmedic.kb.memory.observed import Failure, Site, cards, failures, shown, sites
from trainmedic.kb.memory.plan import SETTINGS, Unplanned, is_on, plan_of
from trainmedic.kb.messages import LANGUAGES, load_messages
from trainmedic.kb.model.place import Span

_MESSAGES = load_messages("trainmedic.kb.memory")
_ELSEWHERE = ("engine", "wake", "loading", "evaluation")
"""Places where no training step runs."""
_NEAR = 0.012
"""How near a size is that a message rounds to two decimals, and a batch a few tokens shorter than the limit makes."""
_NOTABLE = 0.05
"""Of a card, what others must hold to be worth a word."""
_TOP = 5
_MOST_BASE = 0.8
_GROUPS = {
    "states": ("weights", "gathered", "gradients", "optimizer", "reference", "engine", "update"),
    "logits": ("logits",),
    "activations": ("activations", "attention"),
}


@dataclass(frozen=True)
class Explanation:
    """One run's memory: what failed, what was expected, what would fit."""

    facts: Facts
    failure: Failure | None
    seen: tuple[Site, ...]
    capacity: float | None
    plan: Plan | Unplanned

    @cached_property
    def estimate(self) -> Estimate | None:
        return estimate(self.plan) if isinstance(self.plan, Plan) else None

    @property
    def rows_known(self) -> bool:
        """Whether the length of the rows is known, and so what the backward pass needs."""
        return isinstance(self.plan, Plan) and self.plan.length.high > 0

    @property
    def room(self) -> float | None:
        """Bytes of its card that the run can have."""
        return self.failure.at_hand if self.failure is not None else self.capacity

    @cached_property
    def in_training(self) -> bool:
        """Whether the failure is one of a training step, as far as its traceback tells."""
        return self.failure is not None and not any(
            place in _ELSEWHERE and trace.span.attachment == self.failure.span.attachment
            for place, trace in out_of_memory(self.facts.evidence)
            if trace.span.line <= self.failure.span.line <= trace.span.end_line
        )

    @cached_property
    def too_large(self) -> bool:
        """Whether the configuration does not fit: likely where memory ran out, certainly where only a card is known."""
        if self.estimate is None or self.room is None:
            return False
        if self.failure is None or not self.rows_known:
            at_work = self.facts.evidence.rows if self.failure is None else not self.in_training
            return not at_work and self.estimate.total.low > self.room
        return self.in_training and not fits(self.estimate, self.room)

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        if not isinstance(self.plan, Plan) or self.room is None or not self.too_large:
            return ()
        return remedies(self.plan, self.facts, self.room)

    @property
    def fullest(self) -> str:
        """The group of the largest term: states, logits or activations.

        A frozen base counts only if it leaves next to no room: with an adapter it is not what can be changed.
        """
        if self.estimate is None or not isinstance(self.plan, Plan):
            return ""
        terms, frozen = self.estimate.largest, self.plan.adapter is not None
        if frozen and self.estimate.terms["weights"].likely < _MOST_BASE * (self.room or 0):
            terms = [name for name in terms if name not in ("weights", "gathered")]
        return next((group for name in terms for group in _GROUPS if name in _GROUPS[group]), "states")

    @property
    def unexplained(self) -> bool:
        """Whether a training step needed more than the configuration can explain."""
        needed = self.failure.needed if self.failure is not None else None
        known = self.estimate is not None and needed is not None and self.in_training
        return known and self.estimate is not None and (needed or 0) > self.estimate.total.high

    @property
    def held_by_others(self) -> float:
        """Bytes of the card that other processes hold; 0 where they are not worth a word."""
        if self.failure is None or self.failure.capacity is None:
            return 0.0
        held = self.failure.capacity - (self.failure.at_hand or 0)
        return held if held > _NOTABLE * self.failure.capacity else 0.0

    @property
    def notable(self) -> bool:
        """Whether something fills the card besides the configuration."""
        fragmented = self.failure is not None and self.failure.fragmented
        return bool(self.seen or fragmented or self.held_by_others or self.unexplained)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The message, and the settings of the largest terms."""
        placed = [] if self.failure is None else [self.failure.span]
        placed += [site.span for site in self.seen[:_TOP]]
        if self.estimate is not None:
            names = [name for term in self.estimate.largest[:3] for name in SETTINGS[term]]
            for name in dict.fromkeys(names):
                fact = self.facts.name(name)
                placed += [span for span in fact.spans if not span.default]
        return tuple(dict.fromkeys(placed))

    def told(self) -> dict[str, str]:
        """The sentences in each language, for the placeholders ``en`` and ``zh``."""
        return {language: _Teller(self, language).text() for language in LANGUAGES}


def explanation(facts: Facts) -> Explanation:
    """The run's memory, worked out once for all rules."""
    return facts.once(__name__, _explained)


def _explained(facts: Facts) -> Explanation:
    failure = next(failures(facts.evidence), None)
    listed = [card.total for card in cards(facts.evidence)]
    capacity = failure.capacity if failure is not None else min(listed, default=None)
    known = failure is not None or capacity is not None
    plan = plan_of(facts, capacity) if known else Unplanned(missing=())
    whole = Explanation(facts, failure, tuple(sites(facts.evidence)), capacity, plan)
    if isinstance(plan, Plan) or not known:
        return whole
    staying = replace(whole, plan=plan_of(facts, capacity, rows_known=False))
    return staying if staying.too_large else whole


class _Teller:
    """The sentences of one language."""

    def __init__(self, found: Explanation, language: str) -> None:
        self.found, self.language = found, language

    def text(self) -> str:
        parts = [*self._configuration(), *self._failure(), *self._causes(), *self._remedy(), *self._snapshot()]
        return ("" if self.language == "zh" else " ").join(parts)

    def _say(self, name: str, **values: object) -> str:
        return _MESSAGES(name, self.language, **values)

    def _range(self, of: Range) -> dict[str, str]:
        return {"low": shown(of.low), "likely": shown(of.likely), "high": shown(of.high)}

    def _failure(self) -> Sequence[str]:
        failure, capacity = self.found.failure, self.found.capacity
        if failure is None:
            return [self._say("card", capacity=shown(capacity))] if capacity is not None else []
        if failure.allocated is None or capacity is None:
            return [self._say("failed", tried=shown(failure.tried))]
        held = {"capacity": shown(capacity), "allocated": shown(failure.allocated), "tried": shown(failure.tried)}
        return [self._say("held", **held)]

    def _configuration(self) -> Sequence[str]:
        expected, plan = self.found.estimate, self.found.plan
        if expected is None or not isinstance(plan, Plan) or not (self.found.in_training or self.found.too_large):
            return []
        if not self.found.too_large:
            return self._unexplained(expected)
        items = [f"{self._say(f'term.{name}')} {shown(expected.terms[name].likely)}" for name in expected.largest]
        terms = ("、" if self.language == "zh" else ", ").join(items)
        rough = [] if plan.shape.exact else [self._say("rough")]
        rough += [] if self.found.rows_known else [self._say("staying")]
        return [self._say("estimate", terms=terms, **self._range(expected.total)), *rough]

    def _unexplained(self, expected: Estimate) -> Sequence[str]:
        failure = self.found.failure
        if self.found.unexplained and failure is not None:
            return [self._say("unexplained", needed=shown(failure.needed or 0), **self._range(expected.total))]
        return [self._say("beyond", **self._range(expected.total))]

    def _causes(self) -> Sequence[str]:
        failure, plan = self.found.failure, self.found.plan
        said: list[str] = []
        if failure is None:
            return said
        dtype = matched(failure, plan) if isinstance(plan, Plan) else None
        if dtype is not None and isinstance(plan, Plan):
            length = int(plan.length.high // plan.sequence_ranks)
            numbers = {"rows": plan.rows, "length": length, "vocabulary": plan.shape.vocabulary}
            said.append(self._say("matched", tried=shown(failure.tried), dtype=dtype, **numbers))
        if failure.fragmented:
            said.append(self._say("fragmented", idle=shown(failure.idle or 0)))
        if self.found.held_by_others:
            beside = "engine" if is_on(self.found.facts, "rollout_engine") else "others"
            said.append(self._say(f"beside.{beside}", others=shown(self.found.held_by_others)))
        return said

    def _remedy(self) -> Sequence[str]:
        if not self.found.too_large:
            return []
        if not self.found.remedies:
            return [self._say("remedy.none")]
        return [self._say("remedy.one", likely=shown(self.found.remedies[0].estimate.total.likely))]

    def _snapshot(self) -> Sequence[str]:
        listed = [self._say("site", size=shown(site.size), where=site.where) for site in self.found.seen[:_TOP]]
        return [self._say("snapshot", sites="; ".join(listed))] if listed else []


def matched(failure: Failure, plan: Plan) -> str | None:
    """The dtype in which one copy of the logits has the size that failed."""
    for dtype, size in logit_sizes(plan).items():
        if abs(failure.tried - size) <= _NEAR * size:
            return dtype
    return None
