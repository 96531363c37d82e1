"""Scripts around Hugging Face's trainer: a loss of their own that no one divides, a model loaded before its set-up."""

from __future__ import annotations

import ast

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.code.program import Event, Flaws, Program, dotted, last_part, words_in

_TRAINERS = frozenset(("Trainer", "Seq2SeqTrainer", "SFTTrainer"))
_SETUP = regex(
    r"\w*TrainingArguments|(?:SFT|DPO|KTO|ORPO|CPO|GRPO|RLOO|PPO|GKD|Reward|OnlineDPO|NashMD|XPO|PRM|BCO)Config"
    r"|Accelerator|PartialState|init_process_group|init_distributed|HfDeepSpeedConfig"
    r"|parse_args_into_dataclasses|parse_args_and_config|parse_(?:dict|json_file|yaml_file)"
)
_MODEL = regex(r"(?:Auto|\w+?)(?:Model|ModelFor\w+|For\w+)")


def loss_without_token_count(program: Program) -> Flaws:
    """An override of compute_loss is given the number of tokens of the step, and neither uses it nor divides."""
    if "model_accepts_loss_kwargs" in program.words:
        return
    for node in ast.walk(program.tree):
        if isinstance(node, ast.ClassDef) and any(last_part(base) in _TRAINERS for base in node.bases):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "compute_loss" and _ignores_count(method):
                    yield node.bases[0], *_returns(method)[-1:]


def _ignores_count(method: ast.FunctionDef) -> bool:
    arguments = method.args
    named = {each.arg for each in (*arguments.args, *arguments.kwonlyargs)}
    holders = {"num_items_in_batch"} & named | {each.arg for each in (arguments.kwarg,) if each is not None}
    used = set().union(*map(words_in, method.body))
    return bool(holders) and not used & (holders | {"num_items_in_batch", "gradient_accumulation_steps"})


def _returns(method: ast.FunctionDef) -> list[ast.Return]:
    return [node for node in ast.walk(method) if isinstance(node, ast.Return)]


def model_loaded_before_arguments(program: Program) -> Flaws:
    """The model is loaded, and what tells the library of FSDP or ZeRO-3 and its ranks is made only afterwards."""
    loaded: Event | None = None
    for event in program.followed(program.scopes.get("", ())):
        if not isinstance(event.node, ast.Call):
            continue
        if _SETUP.fullmatch(event.tail):
            if loaded is not None:
                yield loaded.node, event.node
            return
        if loaded is None and event.tail == "from_pretrained" and _loads_model(event):
            loaded = event


def _loads_model(event: Event) -> bool:
    owner = dotted(event.receiver).rpartition(".")[2] if event.receiver is not None else ""
    return _MODEL.fullmatch(owner) is not None
