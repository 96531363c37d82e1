"""Differences between a run that works and one that does not, and the effect of each. Pure.

A difference is explained by what happens on the failing side alone: a rule that fires, a known defect, an origin of a
mechanism that produces the symptom, or a default that changed between the releases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from trainmedic.kb.audit.audit import DefectMatch, audit, closeness, wordings
from trainmedic.kb.audit.defect import DefectSet
from trainmedic.kb.audit.lock_comparison import CLOSE, compare
from trainmedic.kb.audit.upgrades import releases_of
from trainmedic.kb.comparison.curve_comparison import CurveParting, partings
from trainmedic.kb.engine.facts import BATCH, RECOGNISED, Facts
from trainmedic.kb.engine.mechanism import COMMONNESS, Mechanism, OriginState, Weighed, origin_id, weigh_all
from trainmedic.kb.engine.values import UNKNOWN, Fact, equal, show
from trainmedic.kb.engine.version_ranges import version_text
from trainmedic.kb.frameworks.canonical import name_of
from trainmedic.kb.model.evidence import Evidence, Signal
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Report, Text
from trainmedic.kb.model.run import Option, RunConfig, Setting, VersionFact
from trainmedic.kb.parse.logs.signal_kinds import BENIGN

RANKS = {"error": 0, "defect": 1, "origin": 2, "warning": 3, "possible": 4, "default": 5, "info": 6}
"""Order of the effects of differences that explain the symptom equally well."""
_SAME = {"accumulation": "gradient_accumulation", "world_size": "num_processes"}
"""Computed numbers and the settings that say the same."""
_WORD_BREAKS = str.maketrans(dict.fromkeys("()[],=<>!'\"+*/", " "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs: what was read, the rules' report, and its known defects."""

    evidence: Evidence
    report: Report
    defects: tuple[DefectMatch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a difference. ``kind``: rule, defect, origin, default, removed or renamed.

    ``explains``: it produces a symptom that only the failing run shows. ``weight`` is a key of `RANKS`; among equal
    weights the greater ``strength`` comes first.
    """

    kind: str
    id: str
    title: Text
    fix: Text | None = None
    explains: bool = False
    weight: str = "info"
    strength: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that differs, as text; None on a side that does not have it or does not say.

    ``kind``: run (a recognised word), setting (canonical), option (as written), package. The sources say where a value
    comes from: ``written: lr``, ``default of trl 0.19.0``.
    """

    kind: str
    name: str
    good: str | None
    bad: str | None
    good_source: str = ""
    bad_source: str = ""
    good_place: Span | None = None
    bad_place: Span | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """The differences, those that explain the symptom first. ``findings``, ``defects`` and ``signals`` are those of the
    failing run alone."""

    differences: tuple[Difference, ...] = ()
    curves: tuple[CurveParting, ...] = ()
    findings: tuple[Finding, ...] = ()
    defects: tuple[DefectMatch, ...] = ()
    signals: tuple[Signal, ...] = ()


def side_of(evidence: Evidence, report: Report, defects: DefectSet) -> Side:
    return Side(evidence=evidence, report=report, defects=audit(defects.all, evidence, releases_of(defects.all)))


def diff_runs(good: Side, bad: Side, mechanisms: Iterable[Mechanism] = ()) -> RunDiff:
    """``mechanisms`` are weighed only if the failing run shows a symptom that the other does not."""
    kinds = {signal.kind for signal in good.evidence.signals} | BENIGN
    signals = tuple(signal for signal in bad.evidence.signals if signal.kind not in kinds)
    symptoms = frozenset(signal.kind for signal in signals)
    fired = {finding.rule_id for finding in good.report.fired}
    findings = tuple(f for f in bad.report.fired if f.rule_id not in fired and f.concludes == "fault")
    locks = compare(good.evidence.versions, bad.evidence, bad.defects, wordings(bad.evidence))
    present = {match.defect.id for match in good.defects}
    defects = tuple(match for match in bad.defects if match.defect.id not in present)
    likely = _likely(bad.evidence, [m for m in mechanisms if symptoms.intersection(m.predicts)])
    origins = tuple(_only_bad_origins(likely, good.evidence))
    differences = [
        *_recognised(good.evidence.run, bad.evidence.run),
        *_settings(good.evidence.run, bad.evidence.run),
        *_batch_numbers(good.evidence, bad.evidence),
        *_options(good.evidence.run, bad.evidence.run),
        *(_difference("package", c.package, _version(c.good), _version(c.bad)) for c in locks.packages),
    ]
    sentences = wordings(bad.evidence)
    speaking = {m.defect.id for m in defects if closeness(m.defect, bad.evidence, sentences) >= CLOSE}
    results = []
    for difference in differences:
        effects = [
            *_rules(difference, findings, symptoms),
            *_defects(difference, defects, speaking, likely),
            *_origins(difference, origins),
            *_changed_default(difference),
        ]
        results.append(_with(difference, effects))
    for option in locks.options:
        if option.concerns and name_of(option.framework, option.option) is None:
            results.append(_option_change(option.framework, option.option, option.kind, option.before, option.after))
    return RunDiff(
        differences=tuple(sorted(results, key=_order)),
        curves=partings(good.evidence, bad.evidence),
        findings=findings,
        defects=defects,
        signals=signals,
    )


def _with(difference: Difference, effects: Iterable[Effect]) -> Difference:
    ordered = sorted(
        effects, key=lambda effect: (not effect.explains, RANKS[effect.weight], -effect.strength, effect.id)
    )
    return replace(difference, effects=tuple(ordered))


def _order(difference: Difference) -> tuple[bool, int, float]:
    """Stable: otherwise the run, its settings, its options and the packages keep their order."""
    if not difference.effects:
        return True, len(RANKS), 0.0
    first = difference.effects[0]
    return not first.explains, RANKS[first.weight], -first.strength


# --- what differs -----------------------------------------------------------------------------------------------------


class _Said(NamedTuple):
    """What one side says of something that differs."""

    text: str | None = None
    source: str = ""
    place: Span | None = None


def _difference(kind: str, name: str, good: _Said, bad: _Said) -> Difference:
    return Difference(
        kind=kind,
        name=name,
        good=good.text,
        bad=bad.text,
        good_source=good.source,
        bad_source=bad.source,
        good_place=good.place,
        bad_place=bad.place,
    )


def _version(fact: VersionFact | None) -> _Said:
    return _Said() if fact is None else _Said(version_text(fact), "", fact.span)


def _setting(setting: Setting | None) -> _Said:
    if setting is None:
        return _Said()
    return _Said(show(setting.value), setting.source, setting.place)


def _option(option: Option | None) -> _Said:
    return _Said() if option is None else _Said(show(option.value), "", option.span)


def _computed(fact: Fact) -> _Said:
    return _Said(show(fact.value), fact.seen.partition("(")[2].rstrip(")"))


def _recognised(good: RunConfig, bad: RunConfig) -> Iterator[Difference]:
    for name in RECOGNISED:
        before, after = getattr(good, name), getattr(bad, name)
        if before is not None and after is not None and before.value != after.value:
            yield _difference("run", name, *(_Said(side.value, side.reason, side.span) for side in (before, after)))


def _settings(good: RunConfig, bad: RunConfig) -> Iterator[Difference]:
    before, after = good.settings, bad.settings
    for name in dict.fromkeys((*before, *after)):
        if name in RECOGNISED:
            continue
        first, second = before.get(name), after.get(name)
        if first is None or second is None:
            written = first if first is not None else second
            # Unknown on one side: a difference only if the other side was written and this side could have said so.
            other = good if first is None else bad
            if written is None or written.option is None or other.partial or not other.options:
                continue
        elif equal(first.value, second.value):
            continue
        yield _difference("setting", name, _setting(first), _setting(second))


def _batch_numbers(good: Evidence, bad: Evidence) -> Iterator[Difference]:
    """The computed sizes of the batch, where no setting says the same."""
    before, after = Facts(good), Facts(bad)
    for name in BATCH:
        if {name, _SAME.get(name)} & {*good.run.settings, *bad.run.settings}:
            continue
        first, second = before.name(name), after.name(name)
        if UNKNOWN not in (first.value, second.value) and first.value != second.value:
            yield _difference("setting", name, _computed(first), _computed(second))


def _options(good: RunConfig, bad: RunConfig) -> Iterator[Difference]:
    """Options that are not canonical setting and are written differently."""
    before, after = _written(good), _written(bad)
    for key in dict.fromkeys((*before, *after)):
        first, second = before.get(key), after.get(key)
        if first is not None and second is not None and equal(first.value, second.value):
            continue
        if (first is None and (good.partial or not before)) or (second is None and (bad.partial or not after)):
            continue
        yield _difference("option", key[1], _option(first), _option(second))


def _written(run: RunConfig) -> Mapping[tuple[str, str], Option]:
    framework = run.framework.value if run.framework is not None else None
    algorithm = run.algorithm.value if run.algorithm is not None else None
    return {
        (option.scope, option.key.replace("-", "_")): option
        for option in run.options
        if name_of(framework, option.key, option.scope, algorithm) is None and not isinstance(option.value, Mapping)
    }


# --- what a difference does -------------------------------------------------------------------------------------------


def _rules(difference: Difference, findings: Iterable[Finding], symptoms: Collection[str]) -> Iterator[Effect]:
    for finding in findings:
        texts = [term.text for term in finding.terms]
        if not (_names(difference, texts) or _is_in(difference.bad_place, finding.evidence)):
            continue
        yield Effect(
            kind="rule",
            id=finding.rule_id,
            title=finding.title,
            fix=finding.fixes[0].text if finding.fixes else None,
            explains=any(symptom in symptoms for symptom in finding.symptoms),
            weight=finding.severity.value,
        )


def _names(difference: Difference, conditions: Iterable[str]) -> bool:
    """Whether a condition names the setting, the option, or the package."""
    return any(difference.name in condition.translate(_WORD_BREAKS).split() for condition in conditions)


def _is_in(place: Span | None, others: Iterable[Span]) -> bool:
    return place is not None and any(
        other.attachment == place.attachment
        and not other.default
        and (other.line, other.column) < (place.end_line, place.end_column)
        and (place.line, place.column) < (other.end_line, other.end_column)
        for other in others
    )


def _defects(
    difference: Difference, defects: Iterable[DefectMatch], speaking: Collection[str], likely: Mapping[str, Weighed]
) -> Iterator[Effect]:
    for match in defects:
        defect = match.defect
        of_package = difference.kind == "package" and difference.name == defect.package
        of_setting = match.certain and difference.kind != "package" and _names(difference, [defect.when])
        if not (of_package or of_setting):
            continue
        explains = defect.id in speaking or (match.certain and defect.mechanism in likely)
        if match.certain or explains:
            weight = "defect" if match.certain else "possible"
            yield Effect(
                kind="defect",
                id=defect.id,
                title=defect.title,
                fix=defect.workaround,
                explains=explains,
                weight=weight,
            )


def _likely(evidence: Evidence, mechanisms: Iterable[Mechanism]) -> Mapping[str, Weighed]:
    """The mechanisms that something speaks for and nothing excludes."""
    weighed = weigh_all(mechanisms, Facts(evidence))
    return {name: item for name, item in weighed.items() if item.support > item.contradiction and not item.excluded_by}


def _only_bad_origins(likely: Mapping[str, Weighed], good: Evidence) -> Iterator[tuple[Mechanism, OriginState]]:
    facts = Facts(good)
    for item in likely.values():
        before = weigh_all([item.mechanism], facts)[item.mechanism.id].origins
        for first, second in zip(before, item.origins, strict=True):
            if second.value is True and first.value is not True:
                yield item.mechanism, second


def _origins(difference: Difference, origins: Iterable[tuple[Mechanism, OriginState]]) -> Iterator[Effect]:
    for mechanism, state in origins:
        if _names(difference, [state.origin.text]) or _is_in(difference.bad_place, state.spans):
            origin = state.origin
            yield Effect(
                kind="origin",
                id=origin_id(mechanism, origin),
                title=origin.title,
                fix=origin.fix,
                explains=True,
                weight="origin",
                strength=COMMONNESS[origin.common],
            )


def _changed_default(difference: Difference) -> Iterator[Effect]:
    """Both sides leave the setting to its default, and the releases disagree on that."""
    places = (difference.good_place, difference.bad_place)
    if difference.kind == "setting" and difference.name not in BATCH and places == (None, None):
        title = Text(
            en=f"the default changed from {difference.good} to {difference.bad}",
            zh=f"默认值从 {difference.good} 变成了 {difference.bad}",
        )
        yield Effect(kind="default", id=difference.name, title=title, weight="default")


def _option_change(framework: str, option: str, kind: str, before: object, after: object) -> Difference:
    """An option without a canonical name whose meaning changed with the release, though it was left as it was."""
    titles = {
        "default": Text(en="the default changed", zh="默认值变了"),
        "removed": Text(en="the newer release no longer has this option", zh="新版本已没有这个选项"),
        "renamed": Text(en=f"renamed to {after}", zh=f"改名为 {after}"),
    }
    effect = Effect(kind=kind, id=f"{framework}.{option}", title=titles[kind], weight="default")
    return Difference(
        kind="option",
        name=option,
        good=show(before) if kind == "default" else None,
        bad=show(after) if kind == "default" else None,
        effects=(effect,),
    )
