"""Framework, algorithm, stage and model of a run, each with the reason and the place.

In order of precedence: the program that is started, the classes that are called, option names and values that only
one framework has, and last the user's prose. Names of runs, paths and data sets never decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.frameworks.entries import Entry, algorithm_options, class_entry, program_entry, stage_of
from trainmedic.kb.frameworks.mentions import (
    LIBRARIES,
    NAMES_OF_ALGORITHMS,
    NAMES_OF_BACKENDS,
    NAMES_OF_FRAMEWORKS,
    Line,
    mentioned,
    own_words,
)
from trainmedic.kb.frameworks.models import family_of, mentioned_model, named_model
from trainmedic.kb.frameworks.profiles import BASE, BESIDE, INHERITS, SCRIPTED, Purpose, profiles, select
from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.model.run import Option, Recognised, Region, VersionFact

_NONE: Mapping[str, VersionFact] = MappingProxyType({})
_HF_CLASSES = ("TrainingArguments", "Seq2SeqTrainingArguments", "Trainer", "Seq2SeqTrainer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    framework: Recognised | None = None
    algorithm: Recognised | None = None
    stage: Recognised | None = None
    model: Recognised | None = None
    model_family: Recognised | None = None


@dataclass(slots=True)
class _Draft:
    framework: Recognised | None = None
    algorithm: Recognised | None = None
    stage: Recognised | None = None
    entries: list[tuple[Entry, Recognised]] = field(default_factory=list)


def recognise(
    regions: Sequence[Region],
    options: Sequence[Option],
    question: str = "",
    versions: Mapping[str, VersionFact] = _NONE,
    *,
    said: Sequence[Line] = (),
    raised: Recognised | None = None,
) -> Recognition:
    """Recognise one run from its regions and options; failing that, from the user's words.

    ``said`` are lines of prose that came as attachments (a pasted article, a README); the question's own come first.
    ``raised`` is the framework that a traceback comes from, which says more than words do.
    """
    draft = _Draft()
    prose = own_words(question, regions, said)
    _from_programs(draft, regions)
    _from_classes(draft, options)
    if draft.framework is None:
        draft.framework = _from_keys(options)
    elif draft.entries and not draft.entries[0][0].certain:
        _doubt(draft, options, versions)
    _refine(draft, options)
    if draft.framework is None:
        draft.framework = _named(prose, raised) or _installed(versions)
    if draft.algorithm is None and draft.framework is not None and draft.framework.value in SCRIPTED:
        draft.algorithm = _named_by_script(regions, profiles()[draft.framework.value].commands.trains)
    if draft.algorithm is None and not (draft.stage and draft.stage.value in ("inference", "export")):
        draft.algorithm = mentioned(prose, NAMES_OF_ALGORITHMS)
    _stage(draft, options)
    model = named_model(draft.framework.value if draft.framework else None, options)
    return Recognition(
        framework=draft.framework,
        algorithm=draft.algorithm,
        stage=draft.stage,
        model=model or mentioned_model(prose),
        model_family=family_of(model, options, prose),
    )


def _named(prose: Sequence[Line], raised: Recognised | None) -> Recognised | None:
    """The user's words outweigh a traceback only if that comes from a library which several frameworks use."""
    words = mentioned(prose, NAMES_OF_FRAMEWORKS) or mentioned(prose, NAMES_OF_BACKENDS)
    if raised is None or (words is not None and raised.value in LIBRARIES):
        return words
    return raised


def _stage(draft: _Draft, options: Sequence[Option]) -> None:
    """Without a named stage: the algorithm's, or supervised training if HF's trainer is set up."""
    if draft.stage is not None:
        return
    if draft.algorithm is not None:
        reason = f"algorithm {draft.algorithm.value}"
        draft.stage = Recognised(value=stage_of(draft.algorithm.value), reason=reason, span=draft.algorithm.span)
        return
    hf = next((option for option in options if option.scope in _HF_CLASSES), None)
    if hf is not None and draft.framework is not None and draft.framework.value == BASE:
        reason = f"{hf.scope} trains, and nothing says that it is anything but fine-tuning"
        draft.stage = Recognised(value="sft", reason=reason, span=hf.span)


def _from_programs(draft: _Draft, regions: Sequence[Region]) -> None:
    for region in regions:
        if region.entry is None:
            continue
        entry = program_entry(region.entry.value)
        if entry is not None:
            draft.entries.append((entry, region.entry))
    # A training command says more about the run than a server that is started beside it.
    draft.entries.sort(key=lambda pair: (pair[0].stage in ("inference", "export"), not pair[0].certain))
    for entry, place in draft.entries[:1]:
        reason = f"{place.value} is {entry.framework}'s"
        draft.framework = Recognised(value=entry.framework, reason=reason, span=place.span)
        if entry.algorithm:
            draft.algorithm = Recognised(
                value=entry.algorithm, reason=f"{place.value} trains {entry.algorithm}", span=place.span
            )
        if entry.stage:
            draft.stage = Recognised(value=entry.stage, reason=f"{place.value} is for {entry.stage}", span=place.span)


def _from_classes(draft: _Draft, options: Sequence[Option]) -> None:
    best: tuple[int, Entry, Option] | None = None
    for option in options:
        entry = class_entry(option.scope)
        if entry is not None:
            weight = 2 * (entry.algorithm is None) + (not entry.certain)
            if best is None or weight < best[0]:
                best = (weight, entry, option)
    if best is None:
        return
    _, entry, option = best
    weak = draft.framework is not None and not draft.entries[0][0].certain if draft.entries else False
    if draft.framework is None or weak:
        draft.framework = Recognised(
            value=entry.framework, reason=f"{option.scope} is {entry.framework}'s", span=option.span
        )
    if entry.algorithm and (draft.algorithm is None or weak):
        draft.algorithm = Recognised(
            value=entry.algorithm, reason=f"{option.scope} trains {entry.algorithm}", span=option.span
        )
    elif entry.stage and draft.stage is None:
        draft.stage = Recognised(value=entry.stage, reason=f"{option.scope} is for {entry.stage}", span=option.span)


def _named_by_script(regions: Sequence[Region], trained: Sequence[str]) -> Recognised | None:
    """The algorithm in the name of one's own script (``train_grpo.py``), if it is the only one there."""
    for region in regions:
        if region.entry is not None and region.entry.value.endswith(".py"):
            words = set(re.split(r"[^a-z0-9]+", region.entry.value.rpartition("/")[2].lower()))
            if len(named := words.intersection(trained)) == 1:
                return Recognised(value=named.pop(), reason=region.entry.value, span=region.entry.span)
    return None


def _doubt(draft: _Draft, options: Sequence[Option], versions: Mapping[str, VersionFact]) -> None:
    """A bare script name (``train_dpo.py``) names a framework only if its options are that framework's, and not as well
    those of the only one that is installed."""
    entry = draft.entries[0][0]
    plain = [option for option in options if not option.scope]
    if draft.framework is None or draft.framework.value != entry.framework or not plain:
        return
    known = [option for option in plain if _accepts(entry.framework, option.key)]
    installed = _installed(versions) if entry.framework not in versions else None
    if installed is not None and sum(_accepts(installed.value, option.key) for option in plain) >= len(known):
        draft.framework = installed
        return
    if 2 * len(known) >= len(plain):
        return
    other = _from_keys(options)
    hf = [option for option in plain if _accepts(BASE, option.key)]
    if other is None and entry.algorithm is not None and len(hf) >= 2:
        reason = f"a script for {entry.algorithm} with the options of HF's trainer"
        other = Recognised(value=SCRIPTED[0], reason=reason, span=hf[0].span)
    draft.framework = other


def _accepts(framework: str, key: str) -> bool:
    if framework in INHERITS and _accepts(BASE, key):
        return True
    return _knows(framework, key, key.replace("-", "_"))


def _refine(draft: _Draft, options: Sequence[Option]) -> None:
    """The algorithm from an option's value: stage, rlhf_type, rl, the advantage estimator."""
    framework = draft.framework.value if draft.framework else ""
    if draft.stage and draft.stage.value in ("inference", "export"):
        return
    hints = algorithm_options(framework)
    verdict: tuple[int, str, Option] | None = None
    for option in options:
        if option.scope and option.scope != framework and class_entry(option.scope) is None:
            continue
        words = hints.get(option.key) or hints.get(option.key.replace("-", "_"))
        if words is None:
            continue
        value = option.value[0] if isinstance(option.value, tuple) and option.value else option.value
        word = str(value).lower()
        algorithm = words.get(word) or words.get(word.rpartition(".")[2])  # a class may be written with its package
        algorithm = algorithm or next((words[end] for end in words if end[0] == "*" and word.endswith(end[1:])), None)
        strength = list(hints).index(option.key.replace("-", "_") if option.key not in hints else option.key)
        if algorithm is not None and (verdict is None or strength >= verdict[0]):
            verdict = (strength, algorithm, option)
    if verdict is not None:
        _, algorithm, option = verdict
        reason = f"{option.key} {option.value}" if not isinstance(option.value, bool) else option.key
        draft.algorithm = Recognised(value=algorithm, reason=reason, span=option.span)
        draft.stage = Recognised(value=stage_of(algorithm), reason=reason, span=option.span)
    elif draft.algorithm is None and framework:
        _by_default(draft, framework, options)


def _by_default(draft: _Draft, framework: str, options: Sequence[Option]) -> None:
    programs = [place for entry, place in draft.entries if entry.framework == framework]
    heads = {option.key.partition(".")[0] for option in options}
    sections = profiles()[framework].sections
    default = next((sections[name] for name in sections if name in heads), "") or next(
        (each.means for each in profiles()[framework].purposes if _serves(each, programs, options)), ""
    )
    span = programs[0].span if programs else options[0].span if options else None
    if default in ("inference", "export"):
        draft.stage = Recognised(value=default, reason=f"the options are those for {default}", span=span)
    elif default:
        draft.algorithm = Recognised(
            value=default, reason=f"what {framework} trains where nothing else is said", span=span
        )


def _serves(purpose: Purpose, programs: Sequence[Recognised], options: Sequence[Option]) -> bool:
    """Whether a run that names no algorithm has this purpose, by its program or by what its file writes."""
    written = {option.key for option in options} | {option.key.partition(".")[0] for option in options}
    return (
        (not purpose.program or any(purpose.program in place.value for place in programs))
        and (purpose.started or not programs)
        and written.issuperset(purpose.having)
        and (not purpose.having_any or not written.isdisjoint(purpose.having_any))
        and written.isdisjoint(purpose.lacking)
    )


def _installed(versions: Mapping[str, VersionFact]) -> Recognised | None:
    """The only training framework in a version listing; one that others build on only if none of these is listed."""
    installed = [profiles()[name] for name in select("trainer") if name in versions]
    names = [profile.name for profile in installed if not profile.library and not profile.options_of]
    names = names or [name for name in SCRIPTED if name in versions and profiles()[name].kind == "trainer"]
    if len(names) != 1:
        return None
    return Recognised(
        value=names[0], reason=f"{names[0]} is the only framework installed", span=versions[names[0]].span
    )


def _from_keys(options: Sequence[Option]) -> Recognised | None:
    """The framework with a signature option among these; otherwise the one whose catalogue knows most of them."""
    plain = [option for option in options if option.scope in ("", *BESIDE)]
    for framework, profile in profiles().items():
        sections = tuple(name for name in profile.signature if name.endswith("."))
        for option in plain:
            if (inside := option.key.startswith(sections)) or option.key in profile.signature:
                if option.scope and framework != option.scope:
                    continue
                if framework in BESIDE and _others(plain, framework):
                    continue
                if inside or profile.common_names or not _rivals(framework, plain):
                    return Recognised(
                        value=framework, reason=f"{option.key} is an option of {framework}", span=option.span
                    )
    return _by_score([option for option in plain if not option.scope])


def _others(plain: Sequence[Option], framework: str) -> bool:
    """Whether there are options beyond this launcher or engine file: then it does not name the framework."""
    return any(option.scope != framework and option.key.split(".")[0] not in _heads(framework) for option in plain)


def _heads(framework: str) -> frozenset[str]:
    options = table(framework)
    names = options.names if options else ()
    extra = {"optimizer", "scheduler", "fp16", "bf16", "bfloat16", "wall_clock_breakdown", "steps_per_print", "debug"}
    return frozenset({name.split(".")[0] for name in names} | extra)


def _rivals(framework: str, plain: Sequence[Option]) -> bool:
    scores = _scores([option for option in plain if not option.scope])
    related = (framework, profiles()[framework].extends)
    mine = sum(scores.get(name, 0.0) for name in related)
    return any(score > mine + 1 for name, score in scores.items() if name not in related)


def _scores(options: Sequence[Option]) -> dict[str, float]:
    names = [name for name in select("trainer") if not profiles()[name].common_names and table(name) is not None]
    hf = table(BASE)
    scores = dict.fromkeys(names, 0.0)
    for option in options:
        key = option.key.replace("-", "_")
        holders = [name for name in names if _knows(name, option.key, key)]
        if hf is not None and key in hf.names:
            continue
        holders = [name for name in holders if profiles()[name].extends not in holders]
        for name in holders:
            scores[name] += 1 / len(holders)
    return scores


def _knows(name: str, written: str, underscored: str) -> bool:
    options = table(name)
    if options is None:
        return False
    return written in options.names or (not profiles()[name].exact_names and underscored in options.names)


def _by_score(options: Sequence[Option]) -> Recognised | None:
    """The framework that knows most, and at least half, of what HF's trainer does not: own scripts have own words."""
    if not options:
        return None
    scores = sorted(((score, name) for name, score in _scores(options).items()), reverse=True)
    (best, name), (second, _) = scores[0], scores[1]
    if best < 1.0 or best < 1.5 * second:
        return None
    known = [option for option in options if _knows(name, option.key, option.key.replace("-", "_"))]
    if 2 * len(_own(known)) < len(_own(options)):
        return None
    return Recognised(value=name, reason=f"the options are those of {name}", span=known[0].span)


def _own(options: Sequence[Option]) -> list[Option]:
    hf = table(BASE)
    return [option for option in options if hf is None or option.key.replace("-", "_") not in hf.names]
