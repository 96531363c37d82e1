"""The role of each file in a run's folder, which of them tell about its newest run, and what wrapped ones say as text.
Pure: `ui.doctor` lists and reads them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from typing import Any

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex

_TABLE = "parse/data/run_folder.toml"
_ATTEMPT = regex(
    r"[-_.]?(?<![a-z])(?i:attempt|try|trial|run|previous|prev|old|failed|bak)[-_.]?[0-9]*(?![a-z])|[-_.]?[0-9]{4,}"
)
"""What tells the logs of jobs and attempts apart. Short numbers are mostly those of nodes and workers."""
_MOST_RANKS = 4
_OF_TRACKER = frozenset({"os", "python", "host", "hostname", "executable", "codePath", "gpu", "gpu_count", "cpu_count"})
_LONGEST_RECORD = 65_536
"""Characters of a tracker's metadata and of a rank's error file."""
_TOLD_BY = 400
"""Characters from the beginning of a failure that two ranks are compared by."""
_TRACKED_KEY = regex(r"^(?P<key>[\w./-]+):[ \t]*$")
_TRACKED_PART = regex(r"^(?P<margin> +)(?P<part>desc|sort|value):(?P<rest>.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The purpose of a file; the fields are those of the table, its patterns one expression."""

    name: str
    patterns: re.Pattern[str]
    most: int
    within: int = 1
    competing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file below a run's folder: its path there with ``/``, its size in bytes and when it was changed last."""

    path: str
    size: int
    modified: float


@cache
def roles() -> tuple[Role, ...]:
    """All roles, those first that are read first."""
    rows = load_table(_TABLE)["role"]
    return tuple(Role(**{**row, "patterns": re.compile("|".join(map(translate, row["patterns"])))}) for row in rows)


def role_of(path: str) -> Role | None:
    """The role of the file at ``path``; None if it is not read."""
    lowered = path.lower()
    return next((role for role in roles() if role.patterns.match(lowered)), None)


def left_out() -> frozenset[str]:
    """The names of folders in which nothing of a run is."""
    return frozenset(load_table(_TABLE)["folders"]["left_out"])


def rule() -> dict[str, Any]:
    """By what files are chosen, for a page that lists a folder in the browser: see the table."""
    table = load_table(_TABLE)
    patterns = [pattern for row in table["role"] for pattern in row["patterns"]]
    return {
        "patterns": patterns,
        **table["folders"],
        "telling": table["telling"],
        "ranks": _MOST_RANKS,
        "told_by": _TOLD_BY,
    }


def chosen(entries: Iterable[Entry]) -> tuple[tuple[Role, Entry], ...]:
    """The files that tell about the newest run, in the order of the roles, the newest of each first."""
    known = [(role, entry) for entry in entries if (role := role_of(entry.path)) is not None and entry.size]
    known = _of_newest_run(known, 0)
    found: list[tuple[Role, Entry]] = []
    for role in roles():
        mine = sorted((entry for each, entry in known if each is role), key=lambda e: (-e.modified, e.path))
        if role.name == "program":  # deeper ones are packages and copies
            mine = [entry for entry in mine if "/" not in entry.path]
        mine = _last_attempts(mine) if role.name == "log" else mine
        together = [entry for entry in mine if _above(entry, role.within) == _above(mine[0], role.within)]
        found += [(role, entry) for entry in together[: role.most]]
    return tuple(found)


def _last_attempts(logs: Iterable[Entry]) -> list[Entry]:
    """Of logs that differ by the number of a job or an attempt the first, which is the newest."""
    kept: dict[str, Entry] = {}
    for entry in logs:
        kept.setdefault(_ATTEMPT.sub("", entry.path), entry)
    return list(kept.values())


def _above(entry: Entry, levels: int) -> tuple[str, ...]:
    return tuple(entry.path.split("/")[:-levels])


def _of_newest_run(known: list[tuple[Role, Entry]], depth: int) -> list[tuple[Role, Entry]]:
    """Without the folders that hold the same as a newer one beside them."""
    kept: list[tuple[Role, Entry]] = []
    folders: dict[str, list[tuple[Role, Entry]]] = {}
    for role, entry in known:
        parts = entry.path.split("/")
        if len(parts) == depth + 1:
            kept.append((role, entry))
        else:
            folders.setdefault(parts[depth], []).append((role, entry))
    taken: set[str] = set()
    for inside in sorted(folders.values(), key=lambda files: -max(entry.modified for _, entry in files)):
        competing = {role.name for role, _ in inside if role.competing}
        if not taken & competing:
            taken |= competing
            kept += _of_newest_run(inside, depth + 1)
    return kept


def training_program(texts: Mapping[str, str]) -> str:
    """Of the scripts in a run's folder by name, the one that trains; empty if several could be it."""
    trains = re.compile(load_table(_TABLE)["telling"]["program"])
    found = [name for name, text in texts.items() if trains.search(text)]
    return found[0] if len(found) == 1 else ""


def telling_ranks(tails: Mapping[str, bytes]) -> tuple[str, ...]:
    """Of the logs of all ranks by path, those of the first rank and those whose end speaks of a failure, each once."""
    paths = sorted(tails, key=_numbered)
    first = [path for path in paths if _numbered(path)[0] == _numbered(paths[0])[0]]
    failing = re.compile(load_table(_TABLE)["telling"]["rank"].encode())
    failed: dict[bytes, str] = {}
    for path in paths:
        if (found := failing.search(tails[path])) is not None:
            failed.setdefault(tails[path][found.start() : found.start() + _TOLD_BY], path)
    return tuple(dict.fromkeys([*first, *list(failed.values())[:_MOST_RANKS]]))


def _numbered(path: str) -> tuple[list[int], str]:
    """Rank 2 before rank 10."""
    return [int(part) for part in "".join(c if c.isdigit() else " " for c in path).split()], path


def shown_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that training reads and that are not secrets."""
    table = load_table(_TABLE)["environment"]
    return {
        name: value
        for name, value in sorted(variables.items())
        if name.startswith(tuple(table["shown"])) and not any(word in name for word in table["hidden"])
    }


def output_folders(words: Sequence[str]) -> tuple[str, ...]:
    """The folders that a launch command names for what the run writes, that of its results first."""
    given: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, is_given, value = word.lstrip("-+").partition("=")
        given[name] = value if is_given else following
    found = (given.get(name, "") for name in load_table(_TABLE)["outputs"]["names"])
    return tuple(dict.fromkeys(filter(None, found)))


def command_of_tracker(text: str) -> str:
    """The launch command in a tracker's metadata; empty without one."""
    data = _mapping(text)
    program, words = data.get("program"), data.get("args")
    if not isinstance(program, str):
        return f"{data.get('command') or ''}\n".lstrip("\n")
    words = words if isinstance(words, list) and all(isinstance(word, str) for word in words) else []
    return f"python {shlex.join([program, *words])}\n"


def callstack_of_rank(text: str) -> str:
    """The traceback in the error file of torchelastic; empty without one."""
    message = _mapping(text).get("message")
    inner = message.get("extraInfo") if isinstance(message, dict) else None
    stack = inner.get("py_callstack") if isinstance(inner, dict) else None
    told = message.get("message") if isinstance(message, dict) else message
    return str(stack or told or "")


def told(text: str) -> str:
    """The text for which a tracker's or torchelastic's file stands: a command, a traceback, a configuration; any other
    text as it is."""
    if text.startswith("{") and len(text) <= _LONGEST_RECORD:
        if '"program"' in text or '"command"' in text:
            return command_of_tracker(text) if len(_mapping(text).keys() & _OF_TRACKER) > 1 else text
        return ('"extraInfo"' in text and callstack_of_rank(text)) or text
    return settings_of_tracker(text)


def settings_of_tracker(text: str) -> str:
    """The ``key: {desc, value}`` of W&B and SwanLab as plain ``key: value``, each on the line of its value; any other
    text as it is."""
    lines, key, margin, inside = list[str](), "", "", False
    for line in text.split("\n"):
        if (found := _TRACKED_KEY.match(line)) is not None:
            key, margin, inside = found["key"], "", False
            lines.append("")
        elif (part := _TRACKED_PART.match(line)) is not None and key and margin in ("", part["margin"]):
            margin, inside = part["margin"], part["part"] == "value" and not key.startswith("_")
            lines.append(f"{key}:{part['rest']}" if inside else "")
        elif margin and line.startswith((f"{margin} ", f"{margin}-")):
            lines.append(line if inside else "")
        elif line.strip() and not line.startswith("wandb_version:"):
            return text
        else:
            lines.append("")
    return "\n".join(lines) if key else text


def missing_kinds(roles_read: Iterable[str]) -> tuple[str, ...]:
    """The kinds of files of a run that were not found: ``command``, ``config``, ``log``, ``versions``."""
    read = set(roles_read)
    return tuple(kind for kind, names in _NEEDED.items() if not read & set(names))


_NEEDED: Mapping[str, Sequence[str]] = {
    "command": ("command", "script", "tracked_command", "hydra"),
    "config": (
        "config",
        "program",
        "resolved",
        "hydra",
        "arguments",
        "tracked_config",
        "command",
        "script",
        "tracked_command",
    ),
    "log": ("log", "rank", "rank_error", "tracked_output", "history", "state"),
    "versions": ("installed", "packages", "tracked_packages"),
}


def _mapping(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
