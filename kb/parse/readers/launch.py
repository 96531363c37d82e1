"""Which word of a command line is the launcher, which the program, and where the program's own options begin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.profiles import LAUNCHERS, profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.readers.shell_expand import Arg
from trainmedic.kb.parse.readers.shell_options import DOTTED

_MODULE = regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PYTHON = regex(r"python(?:\d(?:\.\d+)?)?(?:\.exe)?|pypy3?")
_SCRIPT = regex(r".+\.py|.+\.pyw")
_COMMANDS = [profile.commands for profile in profiles().values()]
_VERBS = frozenset(name for commands in _COMMANDS for name in commands.names)
"""Programs that take a verb as their first word."""
_PROGRAMS = {"trtllm-serve", "sglang_router"}
_DISTRIBUTED = frozenset(f"{name}{ending}" for name in ("torchrun", *LAUNCHERS) for ending in ("", ".exe"))
_RUNNER_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    **{module: name for name, launcher in LAUNCHERS.items() for module in launcher.modules},
}
_LAUNCHERS = load_table("parse/data/words.toml")["launchers"]
_BARE = frozenset(_LAUNCHERS["bare"])
_WRAPPERS = frozenset(_LAUNCHERS["wrappers"])
_OVERRIDING = frozenset(name for commands in _COMMANDS if commands.overrides for name in commands.names)
_DECLARED = frozenset(
    (name, verb)
    for commands in _COMMANDS
    for name in commands.names
    for verb in (*commands.trains, *commands.idle, *commands.launches)
)
_LAUNCHING = frozenset((name, verb) for commands in _COMMANDS for name in commands.names for verb in commands.launches)
_HYDRA = regex("|".join(each for profile in profiles().values() for each in profile.overrides))
"""Programs that accept ``key=value`` words."""


class Launch(NamedTuple):
    """Indices into the words: ``command`` the launcher or else the program, ``rest`` the program's first option."""

    launcher: str | None
    entry: str | None
    command: int
    program: int
    rest: int
    overrides: bool  # words like key=value are overrides, never the value of the flag before them


def find(args: Sequence[Arg]) -> Launch | None:
    """The launch in a command line; None if it starts nothing of interest (``cd``, ``pip install`` …)."""
    if not args:
        return None
    dotted = DOTTED.match(args[0].text) is not None
    if dotted or args[0].text.startswith("--"):
        return Launch(None, None, 0, 0, 0, dotted)  # options alone: the program was not pasted
    first = _base(args[0].text)
    ray = _ray(args)
    if ray >= 0:
        started = _at(args, ray) or Launch(None, None, ray, ray, ray, False)
        return started._replace(launcher="ray", command=0)
    if first in _WRAPPERS:
        return _wrapped(args, "srun" if first == "srun" else None)
    return _at(args, 0)


def _wrapped(args: Sequence[Arg], launcher: str | None) -> Launch | None:
    """The first word after the wrapper's own arguments that starts something."""
    for index in range(1, len(args)):
        inner = _at(args, index, wrapped=True)
        if inner is not None:
            return inner._replace(launcher=inner.launcher or launcher, command=index)
    return None


def _ray(args: Sequence[Arg]) -> int:
    texts = [arg.text for arg in args[:3]]
    if [_base(t) for t in texts[:1]] != ["ray"] or texts[1:3] != ["job", "submit"]:
        return -1
    return next((n + 1 for n, arg in enumerate(args) if arg.text == "--" and n + 1 < len(args)), -1)


def _at(args: Sequence[Arg], index: int, *, wrapped: bool = False) -> Launch | None:
    name = _base(args[index].text)
    if name in _DISTRIBUTED:
        return _distributed(args, index, name.removesuffix(".exe"))
    if _PYTHON.fullmatch(name):
        return _python(args, index)
    if name in _VERBS or name in _PROGRAMS:
        verb = index + 1 < len(args) and args[index + 1].text[:1] not in ("-", "–", "—", "")
        if name in _PROGRAMS or not verb:
            return Launch(None, name, index, index, index + 1, False) if not wrapped else None
        verb_text = args[index + 1].text
        if wrapped and (name, verb_text) not in _DECLARED:
            return None  # "uv run --extra megatron python …": the value of a flag of the wrapper
        overrides = name in _OVERRIDING
        if (name, verb_text) in _LAUNCHING:
            program, _ = _program(args, index + 2)
            if program >= 0:
                entry = f"{name} {verb_text} {args[program].text}"
                return Launch("torchrun", entry, index + 1, program, program + 1, overrides)
        return Launch(None, f"{name} {verb_text}", index, index, index + 2, overrides)
    text = args[index].text
    if _SCRIPT.fullmatch(text) or (_MODULE.fullmatch(text) and _flags_follow(args, index) and not text.endswith(".sh")):
        return Launch(None, text, index, index, index + 1, bool(_HYDRA.match(text)))
    if not wrapped and index == 0 and _many_flags(args):
        return Launch(None, text, index, index, index + 1, False)
    return None


def _base(text: str) -> str:
    return text.rpartition("/")[2]


def _flags_follow(args: Sequence[Arg], index: int) -> bool:
    return index + 1 < len(args) and (args[index + 1].text.startswith("--") or "=" in args[index + 1].text)


def _many_flags(args: Sequence[Arg]) -> bool:
    """An unknown program with several long flags of the kind training programs have."""
    known = re.compile(
        r"--(?:model|dataset|learning_rate|output_dir|lr|per_device|train|deepspeed|config|bf16|max_)\w*"
    )
    return sum(1 for arg in args if known.match(arg.text)) >= 2


def _distributed(args: Sequence[Arg], index: int, name: str) -> Launch | None:
    at = index + 1
    verb = LAUNCHERS[name].verb if name in LAUNCHERS else ""
    if verb:
        if at >= len(args) or args[at].text != verb:
            return None
        at += 1
    program, module = _program(args, at)
    if program < 0:
        return Launch(name, None, index, len(args), len(args), False)
    return _nested(args, index, program, name, module=module)


def _program(args: Sequence[Arg], at: int) -> tuple[int, bool]:
    """Index of the script or module among launcher flags, or -1, and whether it is a module."""
    module = False
    while at < len(args):
        text = args[at].text
        if not text.startswith("-") or text == "-":
            return at, module
        name, equals, value = text.lstrip("-").partition("=")
        if name in ("m", "module"):
            module = True
            if equals and value:
                return at, True
            at += 1
        elif equals or name in _BARE:
            at += 1
        else:
            after = args[at + 1].text if at + 1 < len(args) else ""
            at += 1 if after.startswith("-") or _SCRIPT.fullmatch(after) else 2
    return -1, module


def _python(args: Sequence[Arg], index: int) -> Launch | None:
    at = index + 1
    while at < len(args) and args[at].text.startswith("-"):
        text = args[at].text
        if text == "-m" and at + 1 < len(args):
            return _module(args, index, at + 1)
        if text.startswith("-c"):
            return None
        at += 2 if text in ("-X", "-W") else 1
    if at >= len(args):
        return None
    return _nested(args, index, at, "python", module=False)


def _module(args: Sequence[Arg], index: int, at: int) -> Launch | None:
    runner = _RUNNER_MODULES.get(args[at].text)
    if runner is None:
        return _nested(args, index, at, "python", module=True)
    program, module = _program(args, at + 1)
    if program < 0:
        return Launch(runner, None, index, len(args), len(args), False)
    return _nested(args, index, program, runner, module=module)


def _nested(args: Sequence[Arg], index: int, program: int, launcher: str, *, module: bool) -> Launch | None:
    """The program under a launcher; a launcher may start ``swift rlhf`` or another python as well."""
    text = args[program].text
    name = text.partition("=")[2] if module and "=" in text else text
    if not module:
        if name in ("-c", "-") or name.endswith("setup.py"):
            return None
        base = _base(name)
        if launcher != "python" and (_PYTHON.fullmatch(base) or base in _VERBS):
            inner = _at(args, program)
            return inner and inner._replace(launcher=launcher, command=index)
        if launcher == "python" and base in (*_VERBS, "torchrun", *LAUNCHERS):
            inner = _at(args, program)
            return inner and inner._replace(command=index)
    return Launch(launcher, name, index, program, program + 1, bool(_HYDRA.match(name)))
