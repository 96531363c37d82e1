"""A name that the installed release still takes but has announced to drop."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report, successor
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_verdicts import KNOWN
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome

_STAYING = ("gradient_checkpointing", "gradient_checkpointing_kwargs", "overwrite_output_dir")
"""Marked as old by a second name or a help text, and still in use: transformers' first two, LLaMA-Factory's last."""


def check(facts: Facts) -> Outcome:
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
