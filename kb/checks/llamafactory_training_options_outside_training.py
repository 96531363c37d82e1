"""A training file given to LLaMA-Factory's export, chat, api or webchat, which parse without the training arguments."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome
from trainmedic.kb.frameworks.profiles import BASE
from trainmedic.kb.frameworks.tables import Table, table
from trainmedic.kb.model.run import Origin

_VERBS = ("export", "chat", "api", "webchat")
_PARSED = frozenset({"ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments"})
_FILES = (Origin.YAML, Origin.FLAG, Origin.HYDRA)


def check(facts: Facts) -> Outcome:
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
