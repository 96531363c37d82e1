"""Lines ``key: value``: which are YAML, and which only state facts or metrics. Used by `kb.parse.text.stretches`."""

from __future__ import annotations

import re

from trainmedic.kb.parse.text import patterns


def start(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    """The stretch of YAML, or of metrics one per line, that begins at line ``at``."""
    found = patterns.KEY.match(line)
    if found is None or not _config_like(found):
        return None
    base = len(found[1])
    keys, end, number = 0, at, at
    single = False
    while number < len(lines):
        item = lines[number]
        bare = item.strip()
        key = patterns.KEY.match(item)
        deeper = len(item) - len(item.lstrip()) > base
        if not bare or bare.startswith("#") or bare in ("---", "..."):
            if not bare and number - end > 2:
                break
        elif key and (deeper or len(key[1]) == base) and (deeper or _config_like(key)):
            keys += 1
            single = single or "_" in key[2]
            end = number + 1
        elif deeper or (patterns.ITEM.match(item) and number == end and not patterns.holds_sentence(item)):
            end = number + 1
        else:
            break
        number += 1
    if not (keys > 1 or single):
        return None
    return _measured(lines, at, end)


def _measured(lines: list[str], at: int, end: int) -> tuple[str, int, int]:
    """Metrics copied one per line are a log; settings above them are still settings."""
    text = "\n".join(lines[at:end])
    if not patterns.MEASURED.search(text):
        return "yaml", 0, end
    first = next(number for number in range(at, end) if patterns.MEASURED.match(lines[number]))
    if _settings(lines[at:first]) and not _settings(lines[first:end]):
        return "yaml", 0, first
    return ("yaml" if configures(text) else "log"), 0, end


def _settings(lines: list[str]) -> bool:
    """Whether any line sets what no log prints with its metrics."""
    names = (found[2] for line in lines if (found := patterns.KEY.match(line)) is not None)
    return any(name in patterns.CONFIG_KEYS and name != "learning_rate" for name in names)


def configures(text: str) -> bool:
    """Whether a YAML stretch inside a log is a configuration that was printed there, not lines that state facts.

    Two names that configure training among at least four, or four names of which one holds others.
    """
    names: set[str] = set()
    known = nested = 0
    lines = text.split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        found = patterns.KEY.match(line)
        if found is None or found[2] in names:
            continue
        names.add(found[2])
        known += found[2].rpartition(".")[2] in patterns.CONFIG_KEYS
        nested += found[3] is None and len(below) - len(below.lstrip(" -")) > len(found[1])
    return len(names) >= 4 and (known >= 2 or nested > 0)


def _config_like(key: re.Match[str]) -> bool:
    name, value = key[2], key[3] or ""
    if name.isupper() or name[:1].isupper() or name in ("http", "https"):
        return name == "ENV"
    printed = name == "wandb" and value  # every line of its summary begins so
    return not printed and not patterns.holds_sentence(value.split(" #")[0]) and len(value) < 2000
