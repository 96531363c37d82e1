"""Options of a TRL configuration given to the trainer itself, and the ``tokenizer`` argument that was renamed.

The trainers' own parameters were read at 0.13.0, 0.16.1, 0.20.0, 0.24.0, 0.29.1 and 1.9.0; none of them takes further
keywords, except for KTOTrainer of 0.26 to 1.7, which hands them on to a class that takes none either.
"""

from __future__ import annotations

from functools import lru_cache

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.checks.option_readers import own_class
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.frameworks.profiles import BASE, SCRIPTED
from trainmedic.kb.frameworks.tables import of_tables, table
from trainmedic.kb.model.run import Option

_CONFIGS = {
    "DPOTrainer": "DPOConfig", "SFTTrainer": "SFTConfig", "KTOTrainer": "KTOConfig", "RewardTrainer": "RewardConfig",
    "GRPOTrainer": "GRPOConfig",
}  # fmt: skip
_TRL = SCRIPTED[0]
_TAKES = frozenset((
    "model", "ref_model", "args", "data_collator", "train_dataset", "eval_dataset", "processing_class", "model_init",
    "compute_metrics", "compute_loss_func", "callbacks", "optimizers", "optimizer_cls_and_kwargs", "peft_config",
    "preprocess_logits_for_metrics", "formatting_func", "quantization_config", "model_adapter_name",
    "ref_adapter_name", "reward_funcs", "reward_processing_classes", "tools", "rollout_func", "environment_factory",
))  # fmt: skip


def check(facts: Facts) -> Outcome:
    """Fires from TRL 0.13.0 on (``tokenizer``: 0.16.0); without a version it asks for it."""
    options = [option for option in facts.run.options if option.scope in _CONFIGS and option.key not in _TAKES]
    moved = [option for option in options if option.key != "tokenizer" and _field(option)]
    renamed = [option for option in options if option.key == "tokenizer"]
    scopes = {option.scope for option in options}
    if not (moved or renamed) or any(own_class(facts, scope, SCRIPTED) for scope in scopes):
        return CLEAR
    version = facts.evidence.versions.get(_TRL)
    since = facts.version(_TRL, ">=0.13.0" if moved else ">=0.16.0")
    if since.value is UNKNOWN or version is None or version.span is None:
        return Outcome(
            value=None,
            evidence=tuple(option.span for option in (*moved, *renamed)),
            missing=("version:trl",),
            user_provided=True,
        )
    offences = (
        [
            Offence(option, f"belongs into {_CONFIGS[option.scope]}", f"应写进 {_CONFIGS[option.scope]}")
            for option in moved
        ]
        if since.value
        else []
    )
    if facts.version(_TRL, ">=0.16.0").value is True:
        offences += [Offence(option, "now processing_class", "现在叫 processing_class") for option in renamed]
    return report(offences, facts, (_TRL,))


@of_tables
@lru_cache(maxsize=1)
def _fields() -> frozenset[str]:
    """Every name that one of the configurations, or TrainingArguments, ever had."""
    trl, base = table(_TRL), table(BASE)
    names = set(base.names) if base is not None else set()
    for name in trl.names if trl is not None else ():
        line = trl.line(name) if trl is not None else None
        if trl is not None and line is not None:
            owners = {owner for _, _, info in line["runs"] for owner in trl.owner_sets[info["in"]]}
            if owners & set(_CONFIGS.values()):
                names.add(name)
    return frozenset(names)


def _field(option: Option) -> bool:
    return option.key in _fields()
