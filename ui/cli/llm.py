"""Start vLLM with the flags that trainmedic is tuned for, and serve until interrupted.

Needs vLLM (pip install 'trainmedic[vllm]', on the machine with the GPU). What follows -- is handed on to vLLM as it is
and wins over the flags chosen here. A folder of weights, and the default model, are taken from this machine alone;
nothing is downloaded unless --model names a model of the hub.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidSettings, TrainmedicError

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings

MODEL = "Qwen/Qwen3-8B-FP8"
"""Fits a card of 24 GB with room for eight prompts of 8192 tokens. docs/model.md has the arithmetic."""
PORT = 8010
SHARE = 0.92
"""Of the card's memory. vLLM's own default leaves two gigabytes of 24 unused."""
INSTALL = "pip install 'trainmedic[vllm]'"
PARSERS = (
    (r"qwen3-?coder|qwen3\.[5-9]", "qwen3_coder"),
    (r"qwen|qwq|hermes", "hermes"),
    (r"llama-?4", "llama4_pythonic"),
    (r"llama-?3", "llama3_json"),
    (r"mistral|mixtral|ministral|magistral|devstral", "mistral"),
    (r"deepseek-?v3\.2", "deepseek_v32"),
    (r"deepseek-?v3\.1", "deepseek_v31"),
    (r"deepseek-?(?:v3|r1-0528)", "deepseek_v3"),
    (r"gpt-?oss", "openai"),
    (r"glm-?4\.[56]", "glm45"),
    (r"glm-?4\.7", "glm47"),
    (r"kimi-?k2", "kimi_k2"),
    (r"granite-?4", "granite4"),
    (r"granite", "granite"),
    (r"phi-?4-?mini", "phi4_mini_json"),
    (r"internlm", "internlm"),
    (r"minimax-?m2", "minimax_m2"),
    (r"seed-?oss", "seed_oss"),
)
"""In which form a model family writes calls of tools, as vLLM names it; the first that fits the name.
https://docs.vllm.ai/en/latest/features/tool_calling/"""
PARSER = "hermes"
"""For all others: the form that most fine-tunes were taught."""
NO_TOOLS = "none"
QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class VllmMissing(TrainmedicError):
    """vLLM is not installed."""

    code = "vllm_missing"
    kind = "unavailable"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("--model", help=f"folder of weights, or a model of the hub ({MODEL})")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; beyond loopback a key is needed")
    parser.add_argument("--port", type=_positive, default=PORT, help=f"port to listen on ({PORT})")
    parser.add_argument("--tensor-parallel", type=_positive, default=1, metavar="N", help="cards to share it among (1)")
    parser.add_argument(
        "--max-model-len", type=_positive, metavar="N", help="tokens of its context (model_context_tokens)"
    )
    parser.add_argument(
        "--tool-parser",
        metavar="NAME",
        help=f"how it writes calls of tools, for mode investigate (by its family; {NO_TOOLS}: no tools)",
    )
    parser.add_argument("--print", action="store_true", dest="only_print", help="print the command, start nothing")
    parser.add_argument("extra", nargs="*", metavar="-- OPTION", help="further options of vLLM")


def run(options: argparse.Namespace) -> int:
    """Become the server; its exit code is the verb's. With ``--print``, only show the command."""
    from trainmedic.service.settings import is_loopback, load_settings

    settings = load_settings()
    key = settings.model_api_key.get_secret_value()
    if not key and not is_loopback(options.host):
        raise InvalidSettings(
            f"refusing to listen on {options.host} without a key",
            hint="set TRAINMEDIC_MODEL_API_KEY (or TRAINMEDIC_MODEL_API_KEY_FILE), or listen on 127.0.0.1",
        )
    environment = {**QUIET, **({} if _of_the_hub(options.model) else OFFLINE)}
    found = program()
    if options.only_print:
        command = [*(found or ["vllm", "serve"]), *flags(options, settings)]
        words = [f"{name}={value}" for name, value in environment.items()] + [shlex.quote(word) for word in command]
        print(" ".join([*(["VLLM_API_KEY=..."] if key else []), *words]))
        return 0
    if found is None:
        raise VllmMissing("vLLM is not installed", hint=f"{INSTALL}, or run this where it is")
    if key:
        environment["VLLM_API_KEY"] = key  # not as an argument: those are shown to everybody on the machine
    for name, value in environment.items():
        os.putenv(name, value)
    command = [*found, *flags(options, settings)]
    print(f"starting {options.model or MODEL} on http://{options.host}:{options.port}/v1", file=sys.stderr, flush=True)
    os.execv(command[0], command)


def program() -> list[str] | None:
    """How vLLM is started here, model to follow; None where it is not installed.

    The command looks for a distribution called "vllm"; builds under another name can be started as a module only.
    """
    spec = find_spec("vllm")
    if spec is not None and spec.origin is not None:
        beside = Path(sys.executable).with_name("vllm")
        if beside.is_file() and _distributed():
            return [str(beside), "serve"]
        return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model"]
    elsewhere = which("vllm")
    return [elsewhere, "serve"] if elsewhere else None


def flags(options: argparse.Namespace, settings: Settings) -> list[str]:
    """The model and everything after it."""
    model = options.model or MODEL
    chosen = {
        "--served-model-name": settings.model_name or _called(model),
        "--host": options.host,
        "--port": str(options.port),
        "--max-model-len": str(options.max_model_len or settings.model_context_tokens),
        "--tensor-parallel-size": str(options.tensor_parallel),
        "--gpu-memory-utilization": str(SHARE),
        # A form is filled without free white space, which costs time and says nothing.
        "--structured-outputs-config": json.dumps({"backend": "xgrammar", "disable_any_whitespace": True}),
        # Models that think aloud first would use up the time and the tokens of the answer.
        "--default-chat-template-kwargs": json.dumps({"enable_thinking": False}),
    }
    # The instructions and the cases come first in every prompt: they are read once and kept.
    switches = ["--enable-prefix-caching", "--enable-prompt-tokens-details"]
    parser = options.tool_parser or tool_parser(model)
    if parser != NO_TOOLS:
        switches += ["--enable-auto-tool-choice", "--tool-call-parser", parser]
    return [model, *(part for option in chosen.items() for part in option), *switches, *options.extra]


def tool_parser(model: str) -> str:
    """How a model writes calls of tools: by its name, and for a folder of weights by its configuration too."""
    names = f"{Path(model).name} {_architecture(Path(model) / 'config.json')}".casefold().replace("_", "-")
    return next((parser for pattern, parser in PARSERS if re.search(pattern, names)), PARSER)


def _architecture(path: Path) -> str:
    """What a model's configuration says it is; empty where there is none to read."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(config.get("model_type", "")) if isinstance(config, dict) else ""


def _called(model: str) -> str:
    """A folder's own name: where it lies on this machine is nobody's business."""
    return Path(model).resolve().name if Path(model).is_dir() else model


def _of_the_hub(model: str | None) -> bool:
    """Whether the user named a model that is no folder here."""
    return model is not None and not Path(model).exists()


def _distributed() -> bool:
    try:
        version("vllm")
    except PackageNotFoundError:
        return False
    return True


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number
