"""The facts of one run: settings, recognised words, versions, metrics, signals, log lines, cards, options.

Every answer is a `Fact`: a value or `UNKNOWN`, the places it was read from, and what to ask for if it is unknown.
Facts are computed on first use and cached. `FACTS` names the functions that pages may call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar, cast

from trainmedic.kb.engine.graphics_cards import cards
from trainmedic.kb.engine.log_text import Haystack
from trainmedic.kb.engine.memory_places import out_of_memory, size_of
from trainmedic.kb.engine.values import UNKNOWN, Fact, Key, is_number, show, unresolved
from trainmedic.kb.engine.version_ranges import version_text, within
from trainmedic.kb.frameworks.batch import batch
from trainmedic.kb.frameworks.catalogue import pins
from trainmedic.kb.frameworks.horizon import Horizon, Kind, horizons, packages_of
from trainmedic.kb.frameworks.profiles import SETTINGS_OF_FILES
from trainmedic.kb.hang.judge import judge, read
from trainmedic.kb.hang.model import Dumps, Verdict
from trainmedic.kb.hang.model import Kind as Hang
from trainmedic.kb.model.evidence import Evidence, Metric, Row, Signal, Traceback
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Recognised, RunConfig, Value
from trainmedic.kb.versions import interval_holds, interval_of, parse_range

T = TypeVar("T")
RECOGNISED = ("framework", "algorithm", "stage", "model", "model_family")
BATCH = ("world_size", "data_parallel", "accumulation", "global_batch")
WORDS = (*RECOGNISED, "entry", "launcher", *BATCH)
"""Names that a condition may use beside the canonical settings."""

_METRIC_SIGNALS = (
    *("loss", "grad_norm", "eval_loss", "nll_loss", "reward", "logps", "logits", "kl_", "entropy", "length_"),
    *("clip_ratio", "accuracy", "margins", "learning_rate", "lr_", "throughput", "healthy"),
)
"""Beginnings of signals whose absence only logged rows prove; for the others any log or traceback does."""
_ORIGIN_OF_SIZES = ("num_gpus", "micro_batch", "gradient_accumulation")


class Facts:
    """The facts of one run. Compiled conditions call ``fact(key)``; rule modules call the methods.

    ``concepts`` are those of the glossary that the question names without denying them.
    """

    __slots__ = ("_options", "_shared", "_unread", "concepts", "evidence", "haystack", "known", "run")

    def __init__(
        self,
        evidence: Evidence,
        run: RunConfig | None = None,
        concepts: Collection[str] = frozenset(),
        haystack: Haystack | None = None,
        *,
        unread: tuple[Horizon, ...] | None = None,
    ) -> None:
        self.evidence = evidence
        self.concepts = concepts
        self.run = run if run is not None else evidence.run
        self.known: dict[Key, Fact] = {}
        """The facts that were read so far."""
        self._options: dict[str, tuple[Option, ...]] | None = None
        self.haystack = haystack or Haystack(evidence)
        self._shared: dict[str, Any] = {}
        self._unread = unread

    def once(self, name: str, compute: Callable[[Facts], T]) -> T:
        """A value that several rules share, computed once per run. ``name`` is the caller's module."""
        if name not in self._shared:
            self._shared[name] = compute(self)
        return cast(T, self._shared[name])

    def fact(self, key: Key) -> Fact:
        """The fact of one call, cached. Raises KeyError for a function that `FACTS` does not have."""
        fact = self.known.get(key)
        if fact is None:
            fact = self.known[key] = FACTS[key[0]](self, *key[1:])
        return fact

    # --- settings and words -----------------------------------------------------------------------------------------

    def name(self, name: str) -> Fact:
        """A canonical setting (catalogue defaults count), a recognised word, or a batch number."""
        setting = self.run.settings.get(name)
        if name in RECOGNISED and setting is not None and unresolved(setting.value) and getattr(self.run, name):
            return self._recognised(name)
        if setting is not None:
            spans = _places(setting.place) or self._anchor()
            seen = f"{name} = {show(setting.value)}" + (f" ({setting.source})" if setting.option is None else "")
            if unresolved(setting.value):
                return Fact(value=UNKNOWN, spans=spans, seen=f"{seen}, not resolved", missing=(f"setting:{name}",))
            return Fact(value=setting.value, spans=spans, seen=seen, user_provided=not setting.is_default)
        if name in RECOGNISED:
            return self._recognised(name)
        if name in BATCH:
            return self._batch(name)
        if name in ("entry", "launcher"):
            return self._command(name)
        return _unknown(f"{name} is not given", f"setting:{name}")

    def written(self, name: str) -> Fact:
        """Whether the user wrote or said this canonical setting; unknown without a configuration, or with a cut one.

        Also unknown where nothing was read of the release: a rule that asks what is left out means its default.
        """
        setting = self.run.settings.get(name)
        if setting is not None and not setting.is_default:
            return Fact(value=True, spans=_places(setting.place), seen=f"{name} is written", user_provided=True)
        if setting is None and self.unread:
            return _unknown(f"{name} is not written, and its default is not known", f"setting:{name}")
        return self._absent(False, f"{name} is not written", f"setting:{name}")

    @property
    def unread(self) -> tuple[Horizon, ...]:
        """The packages of the run in releases whose defaults are not known."""
        if self._unread is None:
            packages = packages_of((self.run,))
            self._unread = horizons(self.evidence.versions, packages, (Kind.OPTIONS,)) if packages else ()
        return self._unread

    def default_used(self, name: str) -> Fact:
        """Whether the framework's default of this setting is in force."""
        setting = self.run.settings.get(name)
        if setting is None:
            return _unknown(f"{name} is not given", f"setting:{name}")
        if setting.is_default:
            return Fact(value=True, spans=self._anchor(), seen=f"{name} = {show(setting.value)} ({setting.source})")
        return Fact(value=False, spans=_places(setting.place), seen=f"{name} is written", user_provided=True)

    def _recognised(self, name: str) -> Fact:
        found: Recognised | None = getattr(self.run, name)
        if found is None:
            return _unknown(f"{name} is not recognised", name)
        return Fact(value=found.value, spans=_places(found.span), seen=f"{name} {found.value} ({found.reason})")

    def _command(self, name: str) -> Fact:
        for region in self.run.regions:
            if name == "entry" and region.entry is not None:
                entry = region.entry
                return Fact(value=entry.value, spans=_places(entry.span), seen=f"entry {entry.value}")
            if name == "launcher" and region.kind == "command" and not region.partial:
                return Fact(value=region.launcher, seen=f"launcher {show(region.launcher)}")
        return _unknown(f"no command with its {name}", "command")

    def _batch(self, name: str) -> Fact:
        framework = self.run.framework.value if self.run.framework is not None else None
        algorithm = self.run.algorithm.value if self.run.algorithm is not None else None
        known = getattr(batch(self.run.settings, framework, algorithm), name)
        if known is None:
            missing = [f"setting:{n}" for n in _ORIGIN_OF_SIZES if self.name(n).value is UNKNOWN]
            return _unknown(f"{name} cannot be worked out", *(missing or ["setting:num_gpus"]))
        parts = [self.name(part) for part in known.names if part != name]
        return Fact(
            value=known.value,
            spans=tuple(dict.fromkeys(span for part in parts for span in part.spans)),
            seen=f"{name} = {show(known.value)} ({known.how})",
            user_provided=any(part.user_provided for part in parts),
        )

    def _anchor(self) -> tuple[Span, ...]:
        anchor = self.run.anchor
        if anchor is None:
            return ()
        return (anchor if anchor.default else replace(anchor, default=True),)

    def _absent(self, value: Value, seen: str, missing: str, scope: str | None = None) -> Fact:
        """The answer for what is not written: known only if a whole configuration was given.

        A file that is named by a setting but not pasted leaves all its keys unknown.
        """
        naming = SETTINGS_OF_FILES.get(scope or "")
        unread = (
            naming is not None
            and not any(option.scope == scope for option in self.run.options)
            and self.name(naming).value is not None
        )
        if unread or self.run.partial or not self.run.options:
            return _unknown(f"{seen} in what was given", missing)
        return Fact(value=value, seen=seen)

    # --- options by the framework's own spelling ---------------------------------------------------------------------

    @property
    def keys(self) -> Collection[str]:
        """The keys of all options, with underscores for dashes."""
        return self._by_key().keys()

    def _by_key(self) -> Mapping[str, tuple[Option, ...]]:
        if self._options is None:
            table: dict[str, list[Option]] = {}
            for option in self.run.options:
                table.setdefault(option.key.replace("-", "_"), []).append(option)
            self._options = {name: tuple(options) for name, options in table.items()}
        return self._options

    def options(self, key: str, scope: str | None = None) -> tuple[Option, ...]:
        """All options of this key (dashes and underscores alike), in order; of one scope where it is given."""
        found = self._by_key().get(key.replace("-", "_"), ())
        return found if scope is None else tuple(option for option in found if option.scope == scope)

    def option(self, key: str, scope: str | None = None) -> Fact:
        """The value of the last option of this key; None where it is not there."""
        found = self.options(key, scope)
        if not found:
            return self._absent(None, f"{key} is not written", f"option:{key}", scope)
        last = found[-1]
        if unresolved(last.value):
            return Fact(
                value=UNKNOWN, spans=(last.span,), seen=f"{key} = {show(last.value)}", missing=(f"option:{key}",)
            )
        return Fact(value=last.value, spans=(last.span,), seen=f"{key} = {show(last.value)}", user_provided=True)

    def has_option(self, key: str, scope: str | None = None) -> Fact:
        return self._of_last(key, scope, False, lambda last: (True, "is written"))

    def option_has_value(self, key: str, scope: str | None = None) -> Fact:
        """Whether a value follows the option (``--flag false``), as against a bare switch."""

        def read(last: Option) -> tuple[Value, str]:
            return last.raw is not None, f"is followed by {last.raw!r}" if last.raw is not None else "stands bare"

        return self._of_last(key, scope, False, read)

    def option_origin(self, key: str, scope: str | None = None) -> Fact:
        """How the option was written (`kb.model.run.Origin`), None where it is not there."""
        return self._of_last(key, scope, None, lambda last: (last.origin.value, f"is written as {last.origin.value}"))

    def _of_last(self, key: str, scope: str | None, absent: Value, read: Callable[[Option], tuple[Value, str]]) -> Fact:
        """What the last option of this key says, which ``read`` gives with its words; ``absent`` if there is none."""
        found = self.options(key, scope)
        if not found:
            return self._absent(absent, f"{key} is not written", f"option:{key}", scope)
        value, seen = read(found[-1])
        return Fact(value=value, spans=(found[-1].span,), seen=f"{key} {seen}", user_provided=True)

    # --- versions -----------------------------------------------------------------------------------------------------

    def version(self, package: str, spec: str) -> Fact:
        """Whether the version of a package lies in a range. Raises ValueError for text that is not a range."""
        found = self.evidence.versions.get(package)
        if found is None:
            return _unknown(f"version of {package} is not given", f"version:{package}")
        answer = within(found, spec)
        spans = _places(found.span)
        seen = f"{package} {version_text(found)}"
        if answer is None:
            return Fact(value=UNKNOWN, spans=spans, seen=seen, missing=(f"version:{package}",))
        return Fact(value=answer, spans=spans, seen=seen, user_provided=found.exact is not None)

    def version_of(self, package: str) -> Fact:
        """The version as text: exact, or its bounds (``0.3.4–0.5.2``)."""
        found = self.evidence.versions.get(package)
        if found is None or (found.exact is None and found.low is None and found.high is None):
            return _unknown(f"version of {package} is not given", f"version:{package}")
        text = version_text(found)
        return Fact(value=text, spans=_places(found.span), seen=f"{package} {text}", user_provided=True)

    def pinned(self, framework: str, package: str, spec: str) -> Fact:
        """As `version`; where the paste does not give the package, what the exactly known release requires."""
        own = self.fact(("version", package, spec))
        release = self.evidence.versions.get(framework)
        if own.value is not UNKNOWN or package in self.evidence.versions or release is None or release.exact is None:
            return own
        requirement = pins(framework, release.exact).get(package)
        interval = interval_of(requirement) if requirement is not None else None
        answer = interval_holds(interval, parse_range(spec)) if interval is not None else None
        if answer is None:
            return own
        seen = f"{package}{requirement}, required by {framework} {release.exact}"
        return Fact(value=answer, spans=_places(release.span), seen=seen, user_provided=True)

    # --- logs ---------------------------------------------------------------------------------------------------------

    def metric(self, name: str) -> Fact:
        return self._metric(name, lambda found: found[-1])

    def metric_first(self, name: str) -> Fact:
        return self._metric(name, lambda found: found[0])

    def metric_max(self, name: str) -> Fact:
        """The greatest logged value; NaN only where nothing else was logged."""
        return self._metric(name, lambda found: max(found, key=lambda m: (not math.isnan(m.value), m.value)))

    def metric_min(self, name: str) -> Fact:
        """The least logged value; NaN only where nothing else was logged."""
        return self._metric(name, lambda found: min(found, key=lambda m: (math.isnan(m.value), m.value)))

    def metric_abs_max(self, name: str) -> Fact:
        largest = self._metric(name, lambda found: max(found, key=lambda m: (not math.isnan(m.value), abs(m.value))))
        return replace(largest, value=abs(largest.value)) if isinstance(largest.value, float) else largest

    def has_metric(self, name: str) -> Fact:
        """Whether a metric is logged; unknown without a log."""
        found = next(self._metrics(name), None)
        if found is not None:
            return Fact(value=True, spans=(found.span,), seen=f"{name} is logged", user_provided=True)
        if not self.evidence.rows:
            return _unknown("no log", "log")
        return Fact(value=False, seen=f"{name} is not logged")

    def all_finite(self, *names: str) -> Fact:
        """Whether every logged value of these metrics is finite; metrics that are not logged are left out."""
        last: dict[str, Metric] = {}
        for name in names:
            for metric in self._metrics(name):
                if not math.isfinite(metric.value):
                    return Fact(
                        value=False, spans=(metric.span,), seen=f"{metric.name} = {metric.value:g}", user_provided=True
                    )
                last[metric.name] = metric
        if not last:
            return self._no_metric(" or ".join(names), names[0])
        spans = tuple(metric.span for metric in last.values())
        return Fact(value=True, spans=spans, seen=f"{', '.join(last)} finite throughout", user_provided=True)

    def signal(self, kind: str) -> Fact:
        """Whether something was seen in a log or stated in words; false only where a log could have shown it."""
        return self._signal(kind, [s for s in self.evidence.signals if s.kind == kind])

    def seen(self, kind: str) -> Fact:
        """As `signal`, from logs and tracebacks only."""
        return self._signal(kind, [s for s in self.evidence.signals if s.kind == kind and not s.stated])

    def stated(self, kind: str) -> Fact:
        """Whether the user said so in words. Never unknown: we have all his words."""
        found = [s for s in self.evidence.signals if s.kind == kind and s.stated]
        if not found:
            return Fact(value=False, seen=f"{kind} is not stated")
        return Fact(value=True, spans=(found[0].span,), seen=f"{kind} stated", user_provided=True)

    def onset(self, kind: str) -> Fact:
        """The step of the first row that shows a signal; unknown if it is only stated or the row has no step."""
        shown = [s for s in self.evidence.signals if s.kind == kind and not s.stated and s.step is not None]
        if not shown:
            return _unknown(f"no step at which {kind} began", "log")
        first = min(shown, key=lambda signal: (signal.step or 0, signal.span.order))
        return Fact(value=first.step, spans=(first.span,), seen=f"{kind} at step {first.step}", user_provided=True)

    def said(self, *concepts: str) -> Fact:
        """Whether the question names one of these concepts. Never false: what is not said may still be so."""
        named = next((concept for concept in concepts if concept in self.concepts), None)
        if named is None:
            return _unknown(f"{concepts[0]} is not mentioned")
        return Fact(value=True, seen=f"the question mentions {named}", user_provided=True)

    def traceback(self, text: str) -> Fact:
        """Whether an exception's type or message contains a text, upper and lower case alike."""
        found = self._raised(text)
        return _shown(found[0]) if found else self._not_raised(text)

    def in_traceback(self, text: str, *frames: str) -> Fact:
        """As `traceback`, of an exception that one of these texts stands above: in a path, function or source line.

        Unknown where the exception was pasted without its frames.
        """
        found = self._raised(text)
        if not found:
            return self._not_raised(text)
        wanted = tuple(frame.lower() for frame in frames)
        for trace in found:
            above = trace.span.text.lower()
            if any(frame in above for frame in wanted):
                return _shown(trace)
        if any(not trace.frames for trace in found):
            return _unknown(f"{text!r} without the frames above it", "log")
        return Fact(value=False, seen=f"no {frames[0]} above {text!r}")

    def _raised(self, text: str) -> list[Traceback]:
        wanted = text.lower()
        return [one for one in self.evidence.tracebacks if wanted in f"{one.exception}: {one.message}".lower()]

    def _not_raised(self, text: str) -> Fact:
        if self.has_log:
            return Fact(value=False, seen=f"no exception with {text!r}")
        return _unknown("no log", "log")

    def log_says(self, *texts: str) -> Fact:
        """Whether a log holds one of these texts (wildcards: `log_text.pattern_of`); the first of them.

        Never false: a log is mostly an excerpt, so the absence of a line proves nothing.
        """
        places = (self.haystack.find(text) for text in texts)
        span = next((place for place in places if place is not None), None)
        if span is None:
            return _unknown(f"no line with {texts[0]!r}", "log")
        return Fact(value=True, spans=(span,), seen=f"the log says {span.text!r}", user_provided=True)

    def code(self, flaw: str) -> Fact:
        """Whether pasted training code shows this fault (`kb.parse.code.flaws`). Never unknown."""
        spans = next((found.spans for found in self.evidence.flaws if found.name == flaw), None)
        if spans is None:
            return Fact(value=False, seen=f"no code with {flaw}")
        return Fact(value=True, spans=spans, seen=f"the code has {flaw}", user_provided=True)

    def calls(self, *names: str) -> Fact:
        """Whether pasted code calls a function of one of these names (its last part). Never unknown."""
        called = next((call for call in self.evidence.calls if call.name.rpartition(".")[2] in names), None)
        if called is None:
            return Fact(value=False, seen=f"no call of {' or '.join(names)}")
        return Fact(value=True, spans=(called.span,), seen=f"{called.name} is called", user_provided=True)

    @property
    def dumps(self) -> Dumps:
        """Stacks and collectives of all ranks of a run that hangs."""
        world = self.name("world_size").value
        ranks = int(world) if is_number(world) else None
        return self.once("hang.dumps", lambda facts: read(facts.evidence.sources, ranks))

    @property
    def verdict(self) -> Verdict | None:
        """Which rank is odd among them, and why; None where nothing shows that they are held apart."""
        return self.once("hang.verdict", lambda facts: judge(facts.dumps, facts.evidence.sources))

    def hang(self, *kinds: str) -> Fact:
        """Whether one of these kinds (`kb.hang.model.Kind`) holds the ranks apart; false if another one does."""
        verdict = self.verdict
        if verdict is None or verdict.kind is Hang.UNDECIDED:
            return _unknown("nothing of all ranks shows who waits for whom", "stacks:*")
        seen = f"the ranks are held apart: {verdict.kind}"
        return Fact(value=verdict.kind in kinds, spans=verdict.spans, seen=seen, user_provided=True)

    def oom_in(self, *places: str) -> Fact:
        """Whether accelerator memory ran out at one of these `memory_places`; false if it did at another place only."""
        trace = self._out_of_memory(places)
        if trace is not None:
            seen = f"out of memory in {trace.frames[-1]}"
            return Fact(value=True, spans=trace.places, seen=seen, user_provided=True)
        elsewhere = [place for place, _ in out_of_memory(self.evidence) if place]
        if elsewhere:
            return Fact(value=False, seen=f"out of memory in {', '.join(elsewhere)}")
        return _unknown("no traceback that shows where memory ran out", "log")

    def oom_size(self, *places: str) -> Fact:
        """The size that could not be allocated there, as text; unknown if the message does not say it."""
        trace = self._out_of_memory(places)
        size = size_of(trace) if trace is not None else None
        return _unknown("", "log") if size is None else Fact(value=size)

    def oom_frame(self, *places: str) -> Fact:
        """The innermost frame there: file, line, function."""
        trace = self._out_of_memory(places)
        if trace is None:
            return _unknown("", "log")
        return Fact(value=trace.frames[-1].rpartition("/")[2])

    def _out_of_memory(self, places: tuple[str, ...]) -> Traceback | None:
        return next((trace for place, trace in out_of_memory(self.evidence) if place in places), None)

    # --- hardware -----------------------------------------------------------------------------------------------------

    def card_below(self, capability: str) -> Fact:
        """Whether every named card has a lower compute capability; unknown if none is named or they differ."""
        named = self._cards()
        older = {below < float(capability) for below, _ in named}
        if len(older) != 1:
            seen = "cards of several generations are named" if named else "no card is named"
            return Fact(value=UNKNOWN, spans=tuple(span for _, span in named), seen=seen, missing=("card",))
        return Fact(value=older.pop(), spans=(named[0][1],), seen=f"card {named[0][1].text}", user_provided=True)

    def card_name(self, default: str | None = None) -> Fact:
        """The first card that is named, as written; the default if there is none."""
        named = self._cards()
        value = named[0][1].text if named else default
        return Fact(value=UNKNOWN if value is None else value)

    def _cards(self) -> tuple[tuple[float, Span], ...]:
        return self.once("cards", lambda facts: tuple(cards(facts.evidence, facts.run)))

    def _signal(self, kind: str, found: list[Signal]) -> Fact:
        if found:
            best = min(found, key=lambda signal: signal.stated)  # the first shown by a log, else the first stated
            where = "stated" if best.stated else "in the log"
            return Fact(value=True, spans=(best.span,), seen=f"{kind} {where}", user_provided=True)
        proved = bool(self.evidence.rows) or (self.has_log and not kind.startswith(_METRIC_SIGNALS))
        if proved:
            return Fact(value=False, seen=f"no {kind}")
        return _unknown(f"no log that could show {kind}", "log")

    @property
    def has_log(self) -> bool:
        """Whether anything that a run printed was pasted."""
        evidence = self.evidence
        return bool(evidence.rows or evidence.tracebacks) or any(region.kind == "log" for region in evidence.regions)

    def _metric(self, name: str, choose: Callable[[list[Metric]], Metric]) -> Fact:
        found = list(self._metrics(name))
        if not found:
            return self._no_metric(name, name)
        chosen = choose(found)
        value = float(chosen.value)
        return Fact(value=value, spans=(chosen.span,), seen=f"{chosen.name} = {show(value)}", user_provided=True)

    def _metrics(self, name: str) -> Iterator[Metric]:
        """All values of a metric in the order of the log; ``logits/*`` takes every name with that beginning."""
        if name.endswith("*"):
            prefix = name[:-1]
            yield from (m for row in self.evidence.rows for key, m in _ordered(row) if key.startswith(prefix))
        else:
            yield from (row.metrics[name] for row in self.evidence.rows if name in row.metrics)

    def _no_metric(self, shown: str, asked: str) -> Fact:
        return (
            _unknown(f"{shown} is not logged", f"metric:{asked}") if self.evidence.rows else _unknown("no log", "log")
        )


FACTS: Mapping[str, Callable[..., Fact]] = {
    name: getattr(Facts, name)
    for name in (
        *("name", "written", "default_used", "option", "has_option", "option_has_value", "option_origin"),
        *("version", "version_of", "pinned", "signal", "seen", "stated", "onset", "said", "traceback", "log_says"),
        *("in_traceback", "code", "calls", "hang", "card_below", "card_name"),
        *("metric", "metric_first", "metric_max", "metric_min", "metric_abs_max", "has_metric", "all_finite"),
        *("oom_in", "oom_size", "oom_frame"),
    )
}


@lru_cache(maxsize=16_384)  # most facts of most questions are not known, and making them took a tenth of an answer
def _unknown(seen: str, *missing: str) -> Fact:
    return Fact(value=UNKNOWN, seen=seen, missing=missing)


def _shown(trace: Traceback) -> Fact:
    seen = f"{trace.exception}: {trace.message[:80]}"
    return Fact(value=True, spans=trace.places, seen=seen, user_provided=True)


def _places(span: Span | None) -> tuple[Span, ...]:
    return () if span is None else (span,)


def _ordered(row: Row) -> list[tuple[str, Metric]]:
    return sorted(row.metrics.items())


class FactBook:
    """The facts of every run of some evidence, each read once however many rules, mechanisms and defects need it."""

    __slots__ = ("evidence", "haystack", "main", "runs")

    def __init__(self, evidence: Evidence, concepts: Collection[str] = frozenset()) -> None:
        self.evidence = evidence
        self.haystack = Haystack(evidence)
        runs = evidence.runs or (evidence.run,)
        self.runs = tuple(Facts(evidence, run, concepts, self.haystack) for run in runs)
        self.main = self.runs[0]
