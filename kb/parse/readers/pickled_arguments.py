"""The settings in ``training_args.bin`` as Python text: of the object that its pickle would build, the plain values
under the names of attributes. Never raises."""

from __future__ import annotations

from itertools import islice
from typing import Any

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.parse.pickles import Opaque

_MOST_VALUES = 500
_PRIVATE = frozenset({"hub_token", "push_to_hub_token", "logging_dir", "run_name", "local_rank"})


def text_of(saved: Opaque) -> str:
    """Text such as ``args = SFTConfig(⏎    learning_rate=0.0001,⏎)``; empty if it holds no settings."""
    module, _, kind = saved.name.rpartition(".")
    if not isinstance(saved.state, dict) or not kind.isidentifier() or kind.startswith("_"):
        return ""
    package = module.partition(".")[0]
    chosen = {key: _choice(value) for key, value in islice(saved.state.items(), _MOST_VALUES)}
    rows = [f"    {key}={value!r},\n" for key, value in chosen.items() if _told(key, value, package, kind)]
    return f"from {package} import {kind}\nargs = {kind}(\n{''.join(sorted(rows))})\n" if rows else ""


def _choice(value: Any) -> Any:
    """The value of an enumeration's choice."""
    called = value.arguments if isinstance(value, Opaque) else ()
    return called[0] if isinstance(called, tuple) and len(called) == 1 and isinstance(called[0], str) else value


def _told(key: Any, value: Any, package: str, kind: str) -> bool:
    """Whether it is a plain value that someone chose: most fields hold their defaults or what was computed.

    The installed release made the object, so a field that its class does not list is none that anyone wrote.
    """
    if not isinstance(key, str) or not key.isidentifier() or key.startswith("_") or key in _PRIVATE:
        return False
    if value in (None, "", [], {}) or not _plain(value):
        return False
    if package not in catalogue.frameworks():
        return True
    info = catalogue.option(package, key)
    if info is None or info.last is not None or value in (info.default, *info.default_by.values()):
        return False
    return info.framework != package or kind in info.owners or kind not in catalogue.commands(package, info.version)


def _plain(value: Any) -> bool:
    """Whether it consists of few values that Python writes as text: one that is named twice counts twice, for a pickle
    of some lines may be the size of the memory as text."""
    waiting = [value]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return True
        item = waiting.pop()
        if isinstance(item, dict | list | tuple) and len(item) <= _MOST_VALUES:
            waiting += item.values() if isinstance(item, dict) else item
        elif not (item is None or isinstance(item, bool | int | float) or (isinstance(item, str) and len(item) < 2000)):
            return False
    return False
