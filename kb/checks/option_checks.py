"""The checks of rules about one kind of refused option each. A page names one with `check: option_checks.renamed`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from trainmedic.kb.checks.option_offences import Hint, Offence, hint, moved, report, successor
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_values import lacks_value, not_a_choice, takes_no_value, wrong_type
from trainmedic.kb.checks.option_verdicts import ELSEWHERE, GONE, KNOWN, LATER, RETIRED, UNKNOWN, Reader, Verdict
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Change, Outcome
from trainmedic.kb.frameworks.profiles import BASE, profiles
from trainmedic.kb.frameworks.tables import Table, table
from trainmedic.kb.model.report import Safety
from trainmedic.kb.model.run import Option, Origin
from trainmedic.kb.suggest import is_slip

MAX_OWNERS = 4
_STAYING = ("gradient_checkpointing", "gradient_checkpointing_kwargs", "overwrite_output_dir")
"""Marked as old by a second name or a help text, and still in use: transformers' first two, LLaMA-Factory's last."""
_VERBS = ("export", "chat", "api", "webchat")
_PARSED = frozenset({"ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments"})
_FILES = (Origin.YAML, Origin.FLAG, Origin.HYDRA)

# --- names of another release -----------------------------------------------------------------------------------------


def not_yet(facts: Facts) -> Outcome:
    return _report_moved(_of_other_release(facts, (LATER,), strict=True), facts)


def of_other_release_ignored(facts: Facts) -> Outcome:
    return _with_renames(_of_other_release(facts, (GONE, LATER), strict=False), facts)


def removed(facts: Facts) -> Outcome:
    gone = _of_other_release(facts, (GONE,), strict=True)
    return _report_moved([item for item in gone if successor(item[1], item[2].name) is None], facts)


def renamed(facts: Facts) -> Outcome:
    gone = _of_other_release(facts, (GONE,), strict=True)
    return _with_renames([item for item in gone if successor(item[1], item[2].name) is not None], facts)


def _with_renames(options: Sequence[tuple[Option, Reader, Verdict]], facts: Facts) -> Outcome:
    """With the new names to write, where all that is reported has one."""
    named = tuple((option, new) for option, reader, verdict in options if (new := successor(reader, verdict.name)))
    outcome = _report_moved(options, facts)
    known = named and len(named) == len(options)
    return replace(outcome, changes=(Change(safety=Safety.UNSAFE, rename=named),)) if known else outcome


def gone_in_newer_release(facts: Facts) -> Outcome:
    options = judged(facts)
    retired = [item for item in options if item[2].kind == RETIRED]
    # If most names are retired, the user runs an old release.
    return _report_moved(retired if 2 * len(retired) <= len(options) else (), facts)


def _of_other_release(facts: Facts, kinds: Collection[str], *, strict: bool) -> list[tuple[Option, Reader, Verdict]]:
    return [item for item in judged(facts) if item[2].kind in kinds and item[1].strict == strict]


def _report_moved(options: Sequence[tuple[Option, Reader, Verdict]], facts: Facts) -> Outcome:
    packages = []
    for _, reader, verdict in options:
        packages += [reader.catalogue, verdict.info.framework if verdict.info is not None else ""]
    return report([Offence(option, *moved(reader, verdict)) for option, reader, verdict in options], facts, packages)


def deprecated(facts: Facts) -> Outcome:
    """Fires only with a known version, as names are announced at one release and dropped at a later one."""
    offences, packages = [], []
    for option, reader, verdict in judged(facts):
        info = verdict.info
        if info is None or verdict.kind != KNOWN or not info.deprecated or verdict.name in _STAYING:
            continue
        own = info.framework == reader.catalogue
        if (reader.exact if own else reader.inherits) is None:
            continue
        now = successor(reader, verdict.name)
        last = f"gone after {info.last}" if info.last is not None else ""
        en = "; ".join(part for part in (f"use {now}" if now else "", last) if part)
        zh = "；".join(
            part for part in (f"改用 {now}" if now else "", f"{info.last} 之后已删除" if last else "") if part
        )
        offences.append(Offence(option, en, zh))
        packages += [reader.catalogue, info.framework]
    return report(offences, facts, packages)


# --- names that no release has ----------------------------------------------------------------------------------------


def ignored(facts: Facts) -> Outcome:
    """Silent at the top level of a DeepSpeed file, and in nested files, where a name may serve the user alone."""
    return report(
        [
            Offence(option, "", "")
            for option, reader, meant in _unknown(facts, strict=False)
            if meant.why == "none" and reader.how not in ("json", "tree")
        ],
        facts,
    )


def misspelt_ignored(facts: Facts) -> Outcome:
    """Silent on a DeepSpeed option outside its section: `zero_option_outside_section` fires on it."""
    return report(
        [
            Offence(option, meant.en, meant.zh)
            for option, reader, meant in _unknown(facts, strict=False)
            if meant.why == "spelling" and meant.name and (reader.how != "json" or "." not in meant.name)
            if reader.how != "tree" or _beside(option.key, meant.name)
        ],
        facts,
    )


def _beside(name: str, meant: str) -> bool:
    """Whether ``meant`` is a name of the same section and differs by a typing error only."""
    section, _, leaf = name.rpartition(".")
    other, _, known = meant.rpartition(".")
    return section == other and is_slip(leaf, known)


def zero_option_outside_section(facts: Facts) -> Outcome:
    offences = []
    for option, reader, verdict in judged(facts):
        sections = profiles()[reader.catalogue].nested if reader.how == "json" else ()
        if sections and verdict.kind == UNKNOWN and "." not in verdict.name:
            place = hint(reader, verdict.name).name
            if place in [f"{section}.{verdict.name}" for section in sections]:
                offences.append(Offence(option, f"belongs into {place}", f"应写成 {place}"))
    return report(offences, facts)


def of_other_framework(facts: Facts) -> Outcome:
    return _foreign(facts, strict=True)


def of_other_framework_ignored(facts: Facts) -> Outcome:
    return _foreign(facts, strict=False)


def unknown(facts: Facts) -> Outcome:
    """Without a version, fires only if a known name is near."""
    offences, packages = [], []
    for option, reader, meant in _unknown(facts, strict=True):
        complete = reader.exact is not None and not profiles()[reader.catalogue].sampled
        if meant.why != "foreign" and (meant.name or complete):
            offences.append(Offence(option, meant.en, meant.zh))
            packages.append("" if meant.name else reader.catalogue)
    return report(offences, facts, packages)


def of_other_command(facts: Facts) -> Outcome:
    offences, packages = [], []
    for option, reader, verdict in judged(facts):
        if verdict.kind != ELSEWHERE or not reader.strict or verdict.info is None:
            continue
        owners = ", ".join(verdict.info.owners[:MAX_OWNERS]) + (" …" if len(verdict.info.owners) > MAX_OWNERS else "")
        meant = hint(reader, verdict.name)
        en, zh = (f"; {meant.en}", f"；{meant.zh}") if meant.name else ("", "")
        command = reader.owners[0]
        text = f"only for {owners}, not for {command}{en}", f"只属于 {owners}，{command} 没有{zh}"
        offences.append(Offence(option, *text))
        packages.append(reader.catalogue)
    return report(offences, facts, packages)


def _unknown(facts: Facts, *, strict: bool) -> Iterator[tuple[Option, Reader, Hint]]:
    for option, reader, verdict in judged(facts):
        if verdict.kind == UNKNOWN and reader.strict == strict:
            yield option, reader, hint(reader, verdict.name)


def _foreign(facts: Facts, *, strict: bool) -> Outcome:
    unknown_options = _unknown(facts, strict=strict)
    return report([Offence(option, h.en, h.zh) for option, _, h in unknown_options if h.why == "foreign"], facts)


def training_outside_training(facts: Facts) -> Outcome:
    """Fires on names that only the training arguments have, unless extra names are allowed."""
    entry = next((r.entry.value for r in facts.run.regions if r.entry is not None), "")
    framework = facts.run.framework
    own, base = table(framework.value) if framework is not None else None, table(BASE)
    if own is None or base is None or entry.partition(" ")[2] not in _VERBS:
        return CLEAR
    if any("ALLOW_EXTRA_ARGS" in source.text for source in facts.evidence.sources):
        return CLEAR
    offences = [
        Offence(option, "", "")
        for option in facts.run.options
        if option.origin in _FILES and not option.scope and _of_training(option.key, own, base)
    ]
    return report(offences, facts)


def _of_training(key: str, own: Table, base: Table) -> bool:
    """Whether a name belongs to the training arguments and never to what these commands parse."""
    line = own.line(key)
    if line is None:
        return key in base.names
    owners = {owner for _, _, info in line["runs"] for owner in own.owner_sets[info["in"]]}
    return not owners & _PARSED and "TrainingArguments" in owners


# --- values and spellings ---------------------------------------------------------------------------------------------


def abbreviated(facts: Facts) -> Outcome:
    def problem(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
        if verdict.kind != KNOWN or verdict.info is None or not verdict.info.abbreviated or reader.how != "argparse":
            return None
        if profiles()[reader.catalogue].abbreviated:
            return None
        return f"read as {verdict.name}", f"会被读成 {verdict.name}"

    return _report_problems(problem, facts)


def bad_choice(facts: Facts) -> Outcome:
    return _report_problems(not_a_choice, facts)


def bad_type(facts: Facts) -> Outcome:
    return _report_problems(wrong_type, facts)


def switch_with_value(facts: Facts) -> Outcome:
    def problem(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
        if not takes_no_value(option, reader, verdict):
            return None
        return f"it is a switch: leave {option.raw!r} out", f"它是开关，后面不能写 {option.raw!r}"

    return _report_problems(problem, facts)


def value_missing(facts: Facts) -> Outcome:
    """Silent at the end of a cut paste, and before a placeholder (``<number>``, a redirection to the shell)."""
    last = facts.run.options[-1] if facts.run.options else None

    def problem(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
        if not lacks_value(option, reader, verdict) or (facts.run.partial and option is last):
            return None
        return None if _placeholder_follows(option, facts) else ("needs a value", "必须带值")

    return _report_problems(problem, facts)


def _report_problems(problem: Callable[[Option, Reader, Verdict], tuple[str, str] | None], facts: Facts) -> Outcome:
    problems = ((item[0], problem(*item)) for item in judged(facts) if not _placeholder_before_value(item[0]))
    return report([Offence(option, *texts) for option, texts in problems if texts is not None], facts)


def _placeholder_before_value(option: Option) -> bool:
    """Whether ``<number>`` stands where the value belongs, so that the shell (and the reader) took a later word."""
    return option.origin == "flag" and "<" in option.span.text and "<" not in str(option.raw)


def _placeholder_follows(option: Option, facts: Facts) -> bool:
    span = option.span
    for source in facts.evidence.sources:
        if source.name == span.attachment:
            lines = source.text.split("\n")
            if span.end_line <= len(lines):
                return lines[span.end_line - 1][span.end_column - 1 :].lstrip(" =").startswith("<")
    return False
