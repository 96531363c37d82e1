"""The word auto in batch fields of a DeepSpeed file that a script hands to deepspeed.initialize itself.

A module because the call is looked for in the text of the script: its arguments are no options of a trainer.
"""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.frameworks.profiles import BESIDE, profiles
from trainmedic.kb.model.place import Span

_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
_FILLERS = ("lightning", *(word for profile in profiles().values() for word in profile.fills_auto))


def check(facts: Facts) -> Outcome:
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
