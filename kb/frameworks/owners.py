"""Which commands and classes of a framework a run uses, so that its defaults are theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.tables import table

_PPO_WITHOUT_RAY = re.compile(r"(?:^|[./])train_ppo(?:\.py)?$")


def owners(
    framework: str, algorithm: str | None, scopes: Iterable[str] = (), programs: Iterable[str] = ()
) -> tuple[str, ...]:
    """The commands or classes whose options and defaults hold.

    Empty where the algorithm does not say: a default is then certain only where all owners agree. ``scopes`` are the
    classes that the user's Python calls; a script of flags has none and gets TRL's ModelConfig as well. ``programs``
    are those that were started: OpenRLHF once had a PPO that DeepSpeed launches, without the actors of Ray.
    """
    if framework == "openrlhf" and any(_PPO_WITHOUT_RAY.search(program) for program in programs):
        return ("train_ppo",)
    classes = [scope for scope in scopes if is_class(framework, scope)]
    profile = profiles().get(framework)
    if profile is None:
        return ()
    if profile.options_of:
        profile = profiles()[profile.options_of]
    if profile.trainers and classes:
        return tuple(sorted(set(classes)))
    if framework == "transformers":
        return ("Seq2SeqTrainingArguments",) if "Seq2SeqTrainingArguments" in classes else ("TrainingArguments",)
    return tuple(profile.owners.get(algorithm or "", profile.owners.get("*", ())))


def is_class(framework: str, scope: str) -> bool:
    """Whether ``scope`` is a configuration class of the framework (or of transformers, which several build on)."""
    if not scope or not scope[0].isupper():
        return False
    for name in (framework, "transformers"):
        found = table(profiles()[name].options_of or name if name in profiles() else name)
        if found is not None and any(scope in group for group in found.owner_sets):
            return True
    return False
