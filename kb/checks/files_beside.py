"""Checks of the file that a library reads beside its trainer's options, such as DeepSpeed's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.frameworks.profiles import BESIDE, FOREIGN, HF_TRAINERS, profiles
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Region, Value

_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
_FILLERS = ("lightning", *(word for profile in profiles().values() for word in profile.fills_auto))


def duplicate_key(facts: Facts) -> Outcome:
    for _, problem, span in _problems(facts, "duplicate_key"):
        return fires(span, key=problem.message.split(" ", 1)[0])
    return CLEAR


def json_not_strict(facts: Facts) -> Outcome:
    """Fires if a Hugging Face trainer gets the file: DeepSpeed's own reader is lenient."""
    framework = facts.run.framework
    if framework is None or framework.value not in HF_TRAINERS:
        return CLEAR
    for region, problem, _ in _problems(facts, "json_error"):
        if "not strict JSON" in problem.message:
            return fires(region.options[0].key_span)
    return CLEAR


def _problems(facts: Facts, code: str) -> Iterator[tuple[Region, Problem, Span]]:
    """Problems of one code in such files that were read whole."""
    for region in facts.run.regions:
        file = BESIDE.get(region.options[0].scope) if region.options else None
        if region.kind != "json" or region.partial or file is None or not file.json:
            continue
        for problem in facts.evidence.receipt.problems:
            span = problem.span
            if problem.code != code or span is None or span.attachment != region.source:
                continue
            if region.start_line <= span.line <= region.end_line:
                yield region, problem, span


def auto_without_trainer(facts: Facts) -> Outcome:
    """Fires where a pasted script calls deepspeed.initialize, nothing in it could fill in auto, and auto is there."""
    for name, file in BESIDE.items():
        call = _call(facts, file.handed_to) if file.handed_to else None
        for key in _KEYS if call is not None else ():
            for option in facts.options(key, name):
                if call is not None and option.value == "auto":
                    return fires(option.span, call, key=key)
    return CLEAR


def _call(facts: Facts, start_of_call: str) -> Span | None:
    for source in facts.evidence.sources:
        at = source.text.find(start_of_call)
        if at < 0 or any(word in source.text for word in _FILLERS):
            continue
        start = source.text.rfind("\n", 0, at) + 1
        line = source.text.count("\n", 0, at) + 1
        if source.text[start:at].lstrip().startswith("#"):
            continue
        name = start_of_call.rstrip("(")
        column = at - start + 1
        return Span(
            attachment=source.name, line=line, column=column, end_line=line, end_column=column + len(name), text=name
        )
    return None


def batch_numbers_disagree(facts: Facts) -> Outcome:
    """Fires where no number of ranks can make them agree, or the known number of ranks does not.

    Tensor, sequence and pipeline parallelism divide the ranks, so a known number of ranks is an upper limit only.
    Elastic training replaces the three numbers by its own.
    """
    return next((found for name in BESIDE if (found := _of_file(facts, name)).value is True), CLEAR)


def _of_file(facts: Facts, name: str) -> Outcome:
    if facts.option("elasticity.enabled", name).value is True:
        return CLEAR
    numbers: list[int] = []
    places: list[Span] = []
    for key in _KEYS:
        fact = facts.option(key, name)
        if isinstance(fact.value, bool) or not isinstance(fact.value, int) or fact.value < 1:
            return CLEAR
        numbers.append(fact.value)
        places += fact.spans
    total, micro, steps = numbers
    ranks = facts.name("world_size")
    shown = {"total": total, "micro": micro, "steps": steps, "product": micro * steps}
    if total % (micro * steps):
        return fires(*places, **shown, ranks="N")
    if isinstance(ranks.value, int) and total // (micro * steps) > ranks.value:
        return fires(*places, *ranks.spans, **shown, ranks=ranks.value)
    return CLEAR


def values_differ_from_trainer(facts: Facts) -> Outcome:
    """Fires on the first pair that differs; the values count as they were read, so "8" and 8 differ."""
    framework = facts.run.framework
    if framework is None or framework.value not in HF_TRAINERS:
        return CLEAR
    for part, file in BESIDE.items():
        for key, how in file.fill.items():
            names = (*how["from"][:1], *how.get("also", ())) if "from" in how and not how.get("pair") else ()
            theirs = next(reversed(_in_file(facts, part, key)), None)
            ours = next((found[-1] for name in names if (found := _of_trainer(facts, name))), None)
            if theirs is None or ours is None or not _differ(theirs.value, ours.value):
                continue
            shown = {"key": key, "theirs": repr(theirs.value), "name": ours.key, "ours": repr(ours.value)}
            return fires(theirs.span, ours.span, **shown)
    return CLEAR


def _in_file(facts: Facts, part: str, key: str) -> Sequence[Option]:
    """The option as the file, or the dictionary that is given to the trainer, has it."""
    return (*facts.options(key, part), *facts.options(f"{part}.{key}"))


def _of_trainer(facts: Facts, name: str) -> Sequence[Option]:
    return [option for option in facts.options(name) if option.scope not in FOREIGN]


def _differ(theirs: Value, ours: Value) -> bool:
    """Whether two values are certainly not the same for the trainer. Its own options are read as numbers."""
    if theirs == "auto" or theirs is None:
        return False
    if isinstance(ours, str):
        try:
            ours = float(ours)
        except ValueError:
            return False
    if not isinstance(ours, (bool, int, float)):
        return False
    if isinstance(theirs, str):
        return theirs.replace(".", "", 1).isdigit()
    if isinstance(theirs, bool) != isinstance(ours, bool):
        return False
    return isinstance(theirs, (bool, int, float)) and theirs != ours
