"""A Trainer's run as attachments: its configuration, the weights' dtype, the installed versions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.model.place import Attachment

SCRIPT, DEEPSPEED, VERSIONS = "trainer.py", "deepspeed.json", "versions.txt"
PACKAGES = sorted(
    {"bitsandbytes", "datasets", "flash-attn", "liger-kernel", "numpy", "tokenizers", "torch", "xformers"}.union(
        each.package for each in profiles().values() if each.library or each.patches or each.kind == "server"
    )
)
PRIVATE = frozenset({"hub_token", "push_to_hub_token", "output_dir", "logging_dir", "run_name", "local_rank"})
"""Fields that no rule reads and that may be private."""
ADAPTER = (
    *("r", "lora_alpha", "lora_dropout", "task_type"),
    *("target_modules", "modules_to_save", "use_rslora", "use_dora"),
)


def attachments(args: Any, model: Any = None) -> tuple[Attachment, ...]:
    """A script that builds ``args`` and ``model``, DeepSpeed's file, and a version listing."""
    texts = {SCRIPT: script(args, model), VERSIONS: versions(), DEEPSPEED: deepspeed(getattr(args, "deepspeed", None))}
    return tuple(Attachment(name=name, content=text) for name, text in texts.items() if text)


def script(args: Any, model: Any) -> str:
    """Python that builds this run. Arguments at their defaults are left out."""
    kind = type(args)
    lines = [f"from {kind.__module__.split('.')[0]} import {kind.__name__}"]
    if model is not None:
        lines += list(_model(model))
    arguments = [f"{name}={_literal(value)}" for name, value in changed(args).items()]
    return "\n".join([*lines, f"args = {_call(kind.__name__, arguments)}"]) + "\n"


def changed(args: Any) -> Mapping[str, Any]:
    """The fields of ``args`` that are not at their defaults, plain values only."""
    fields = {}
    for field in dataclasses.fields(args):
        # Only what the user chose: the defaults of a release are in the catalogue already.
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        value = getattr(args, field.name, default)
        if field.name not in PRIVATE and value != default and value not in ([], {}, "") and _plain(value):
            fields[field.name] = value
    return fields


def deepspeed(config: Any) -> str:
    """DeepSpeed's configuration as JSON text, from a mapping or a file; empty if there is none."""
    if isinstance(config, Mapping):
        return json.dumps(config, indent=1, default=str)
    if isinstance(config, str) and config:
        try:
            with open(config, encoding="utf-8") as stream:
                return stream.read()
        except (OSError, UnicodeDecodeError):
            return ""
    return ""


def versions() -> str:
    """The installed versions in the format of ``pip freeze``."""
    return "".join(f"{name}=={number}\n" for name in PACKAGES if (number := _installed(name)))


def _model(model: Any) -> Iterable[str]:
    inner = getattr(model, "config", None)
    name = str(getattr(inner, "_name_or_path", "") or getattr(inner, "model_type", "") or "model")
    adapters = getattr(model, "peft_config", None)
    base = model.get_base_model() if adapters and hasattr(model, "get_base_model") else model
    arguments = [_literal(name), f"torch_dtype=torch.{_dtype(model)}"]
    attention = getattr(inner, "_attn_implementation", None)
    if isinstance(attention, str) and attention:
        arguments.append(f"attn_implementation={_literal(attention)}")
    yield "import torch"
    yield f"from transformers import {type(base).__name__}"
    yield f"model = {_call(f'{type(base).__name__}.from_pretrained', arguments)}"
    if isinstance(adapters, Mapping) and adapters:
        adapter = next(iter(adapters.values()))
        values = {field: getattr(adapter, field, None) for field in ADAPTER}
        options = [f"{name}={_literal(value)}" for name, value in values.items() if value and _plain(value)]
        yield "from peft import LoraConfig, get_peft_model"
        yield f"adapter = {_call(type(adapter).__name__, options)}"
        yield "model = get_peft_model(model, adapter)"


def _call(name: str, arguments: Sequence[str]) -> str:
    """A call with an argument on each line: findings point at lines, and a patch changes one."""
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), ")"])


def _dtype(model: Any) -> str:
    """The dtype of the first trainable weight."""
    parameters = list(model.parameters()) if hasattr(model, "parameters") else []
    # Adapters often train in another dtype than the frozen base, and the trained one decides.
    trained = next((parameter for parameter in parameters if parameter.requires_grad), None)
    return str(trained.dtype).removeprefix("torch.") if trained is not None else "float32"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _plain(item) for key, item in value.items())
    if isinstance(value, list | tuple | set):
        return all(_plain(item) for item in value)
    return isinstance(value, bool | int | float | str | Enum)


def _literal(value: Any) -> str:
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, set | tuple):
        return repr(sorted(value) if isinstance(value, set) else list(value))
    return repr(value)
