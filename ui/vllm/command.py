"""Start vLLM with the flags that trainmedic is tuned for, and serve until interrupted.

Needs vLLM (pip install 'trainmedic[vllm]', on the machine with the GPU). Arguments after -- are passed to vLLM and
override the flags chosen here. A folder of weights, and the default model, are read from this machine; nothing is
downloaded unless --model names a model of the hub.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidSettings, TrainmedicError
from trainmedic.ui.vllm.families import family

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings

MODEL = "Qwen/Qwen3-8B-FP8"
"""Fits a 24 GB GPU with room for nine prompts of 8192 tokens; docs/know/answers.md has the arithmetic."""
PACKAGE = "vllm"
PORT = 8010
SHARE = 0.92
"""Share of the GPU's memory to use; vLLM's default leaves 2 of 24 GB unused."""
TEXTS = 64
"""Written at once. vLLM's own number is larger than what models with linear attention have state for on most cards, and
then it does not start."""
INSTALL = "pip install 'trainmedic[vllm]'"
NO_TOOLS = "none"
WITHOUT_TOOLS = "no tool-call parser is known for {model}, so mode investigate does not work; --tool-parser names one"
QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class VllmMissing(TrainmedicError):
    code = "vllm_missing"
    kind = "unavailable"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help=f"folder of weights, or a model of the hub ({MODEL})")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; beyond loopback a key is required")
    parser.add_argument("--port", type=_positive, default=PORT, help=f"port to listen on ({PORT})")
    parser.add_argument("--tensor-parallel", type=_positive, default=1, metavar="N", help="number of GPUs (1)")
    parser.add_argument(
        "--max-model-len", type=_positive, metavar="N", help="context length in tokens (model_context_tokens)"
    )
    parser.add_argument(
        "--tool-parser",
        metavar="NAME",
        help=f"vLLM's tool-call parser, for mode investigate (default: by model family; {NO_TOOLS}: no tools)",
    )
    parser.add_argument("--print", action="store_true", dest="only_print", help="print the command, start nothing")
    parser.add_argument("extra", nargs="*", metavar="-- OPTION", help="further options of vLLM")


def run(options: argparse.Namespace) -> int:
    """Replace this process by the server, or with ``--print`` only show the command."""
    from trainmedic.service.configuration import load_settings
    from trainmedic.service.settings import is_loopback

    settings = load_settings()
    key = settings.model.api_key.get_secret_value()
    if not key and not is_loopback(options.host):
        raise InvalidSettings(
            f"refusing to listen on {options.host} without a key",
            hint="set TRAINMEDIC_MODEL_API_KEY (or TRAINMEDIC_MODEL_API_KEY_FILE), or listen on 127.0.0.1",
        )
    from_hub = options.model is not None and not Path(options.model).exists()
    environment = {**QUIET, **({} if from_hub else OFFLINE)}
    start = program()
    command = [*(start or [PACKAGE, "serve"]), *flags(options, settings)]
    if not options.tool_parser and not family(options.model or MODEL).tools:
        print(WITHOUT_TOOLS.format(model=options.model), file=sys.stderr)
    if options.only_print:
        shown = {"VLLM_API_KEY": "..."} | environment if key else environment
        print(*(f"{name}={value}" for name, value in shown.items()), shlex.join(command))
        return 0
    if start is None:
        raise VllmMissing("vLLM is not installed", hint=f"{INSTALL}, or run this on a machine that has it")
    if key:
        environment["VLLM_API_KEY"] = key  # not as an argument: other users of the machine can read those
    for name, value in environment.items():
        os.putenv(name, value)
    print(f"starting {options.model or MODEL} on http://{options.host}:{options.port}/v1", file=sys.stderr, flush=True)
    os.execv(command[0], command)


def program() -> list[str] | None:
    """The command that starts vLLM, to be followed by the model; None if vLLM is not installed.

    Its script looks for a distribution called "vllm"; builds under another name can be started as a module only.
    """
    spec = find_spec(PACKAGE)
    if spec is not None and spec.origin is not None:
        beside = Path(sys.executable).with_name(PACKAGE)
        if beside.is_file() and any(distributions(name=PACKAGE)):
            return [str(beside), "serve"]
        return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model"]
    elsewhere = which(PACKAGE)
    return [elsewhere, "serve"] if elsewhere else None


def flags(options: argparse.Namespace, settings: Settings) -> list[str]:
    model = options.model or MODEL
    chosen = {
        "--served-model-name": settings.model.name or _served_name(model),
        "--host": options.host,
        "--port": str(options.port),
        "--max-model-len": str(options.max_model_len or settings.model.context_tokens),
        "--tensor-parallel-size": str(options.tensor_parallel),
        "--gpu-memory-utilization": str(SHARE),
        "--max-num-seqs": str(TEXTS),
        # White space in structured output costs time and carries no information.
        "--structured-outputs-config": json.dumps({"backend": "xgrammar", "disable_any_whitespace": True}),
        # Reasoning would use up the time and the tokens of the answer. Not every model obeys.
        "--default-chat-template-kwargs": json.dumps({"enable_thinking": False}),
    }
    # The instructions and the cases come first in every prompt, so that their prefix is cached.
    switches = ["--enable-prefix-caching", "--enable-prompt-tokens-details"]
    parser = options.tool_parser or family(model).tools or NO_TOOLS
    if parser != NO_TOOLS:
        switches += ["--enable-auto-tool-choice", "--tool-call-parser", parser]
    if reasoning := family(model).reasoning:
        switches += ["--reasoning-parser", reasoning]
    return [model, *(part for option in chosen.items() for part in option), *switches, *options.extra]


def _served_name(model: str) -> str:
    """The model's name; of a folder only the last part, because its path is private."""
    return Path(model).resolve().name if Path(model).is_dir() else model


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
