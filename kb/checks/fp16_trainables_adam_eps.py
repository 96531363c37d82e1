"""float16 weights that are trained with plain AdamW, the checkpoint's own dtype included.

The rule is the condition below. A module only because ``auto`` takes the dtype that the checkpoint's config.json
states, and that file is not an option of the run: where it was pasted, its dtype stands in for ``auto``.
Default optimizer: adamw_torch, but the fused one with torch 2.8 and transformers 4.57.1 (not yet with 4.46.3).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.frameworks.values import DTYPES
from trainmedic.kb.model.run import Option, Origin, Setting

WHEN = """
written("weights_dtype") and weights_dtype == "fp16"
and (use_peft == False
     or (written("peft_task_type") and peft_task_type in ("SEQ_CLS", "TOKEN_CLS"))
     or (written("modules_to_save") and len(modules_to_save) > 0)
     or version("peft", ">=0.7,<0.12"))
and maybe(load_in_4bit != True) and maybe(load_in_8bit != True)
and maybe(fsdp == None or fsdp == False or fsdp == "")
and fp16 != True and maybe(deepspeed_fp16 != True) and maybe(stage not in ("inference", "export"))
and known(adam_epsilon) and adam_epsilon < 6e-8
and ((written("optimizer") and optimizer == "adamw_torch")
     or (not written("optimizer") and maybe(not (version("torch", ">=2.8") and version("transformers", ">=4.57")))))
"""
_CONDITION = compile_expression(WHEN, vocabulary())


def check(facts: Facts) -> Outcome:
    """Fires where float16 weights are updated by AdamW with an epsilon that float16 rounds to zero."""
    return _CONDITION.explain(_with_checkpoint_dtype(facts))


def _with_checkpoint_dtype(facts: Facts) -> Facts:
    """The same facts, with the dtype of a pasted config.json in the place of ``auto``."""
    setting = facts.run.settings.get("weights_dtype")
    if setting is None or setting.value != "auto":
        return facts
    stated = _checkpoint_dtype(facts)
    dtype = DTYPES.get(str(stated.value)) if stated is not None else None
    if stated is None or dtype is None:
        return facts
    own = Setting(name=setting.name, value=dtype, option=stated, source="config.json of the checkpoint", key=stated.key)
    return Facts(facts.evidence, replace(facts.run, settings=MappingProxyType({**facts.run.settings, own.name: own})))


def _checkpoint_dtype(facts: Facts) -> Option | None:
    """``torch_dtype`` of a pasted model configuration: a JSON file that names its architectures."""
    regions = (region for run in (facts.run, *facts.evidence.runs) for region in run.regions if region.kind == "json")
    for region in (*regions, *(region for region in facts.evidence.regions if region.kind == "json")):
        options = {option.key.split(".")[0]: option for option in region.options if option.origin is Origin.JSON}
        if "architectures" in options and ("torch_dtype" in options or "dtype" in options):
            return options.get("torch_dtype") or options["dtype"]
    return None
