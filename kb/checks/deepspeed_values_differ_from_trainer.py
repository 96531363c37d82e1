"""Numbers written both in a DeepSpeed file and for the Hugging Face trainer, and not the same: the trainer refuses."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.frameworks.profiles import BESIDE, FOREIGN, HF_TRAINERS
from trainmedic.kb.model.run import Option, Value


def check(facts: Facts) -> Outcome:
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
