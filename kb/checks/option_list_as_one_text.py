"""Module names joined with commas where the option wants one word for each."""

from __future__ import annotations

import re

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_verdicts import Reader
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option

_KEYS = ("lora_target_modules", "target_modules", "ds.lora.target_modules", "lora_target")
_NAMES = regex(r"\w+(?:\s*,\s*\w+)+")
_BRACKETS = regex(r"\[[\w'\",\s]+\]")


def check(facts: Facts) -> Outcome:
    """Fires for flags of TRL and OpenRLHF, axolotl's file and LoraConfig; LLaMA-Factory splits at commas itself."""
    offences = []
    for option, reader, verdict in judged(facts):
        if verdict.name in _KEYS and isinstance(option.value, str) and _joined(option, option.value.strip(), reader):
            names = " ".join(re.findall(r"\w+", option.value))
            offences.append(
                Offence(option, f"read as one name; the names are {names}", f"被当成一个名字；应是 {names}")
            )
    return report(offences, facts)


def _joined(option: Option, text: str, reader: Reader) -> bool:
    """Whether one text lists several names for a reader that does not split it."""
    joined = profiles()[reader.catalogue].joined_lists.get(reader.how, "")
    bracketed = joined != "" and option.quoted and _BRACKETS.fullmatch(text) is not None
    return bracketed or (joined == "any" and _NAMES.fullmatch(text) is not None)
