"""Which stretch of lines begins where: commands, JSON, logs, listings, Python, sections, YAML, tables."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.text import key_value_lines, patterns
from trainmedic.kb.parse.text.kinds import POD_STATUS, has_command, starts_command, unprompted

_SETS_UP = regex(r"^[ \t]*+(?:export[ \t]++\w++=|#SBATCH)", re.MULTILINE)
_STATUS_TABLES = ({"JobID", "State"}, {"JOBID", "ST"}, {"READY", "STATUS", "RESTARTS"})
"""Columns in the head of what `sacct`, `squeue` and `kubectl get` print."""
_NEAR = 4
"""Lines after the first in which `kubectl describe` says what it describes."""


def _is_shell(line: str) -> bool:
    patterns_of_shell = (patterns.SHELL, patterns.FLAGS, patterns.DOTTED)
    return starts_command(line) or any(pattern.match(line) for pattern in patterns_of_shell)


def start(lines: list[str], at: int, brackets: Brackets) -> tuple[str, int, int] | None:
    """The stretch that begins at line ``at``: (kind, column, line after its end), or None for plain text.

    ``brackets`` are those of the same ``lines``.
    """
    line = lines[at]
    stretch = _cluster_status(lines, at, line) or _command(lines, at, line) or _json(lines, at, line, brackets)
    if stretch is not None:
        return stretch
    for find in (_log, _versions, _python, _section, key_value_lines.start, _table):
        found = find(lines, at, line)
        if found is not None:
            return found
    return None


def _command(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if line.lstrip()[:1] == "|" and line.count("|") > 1:
        return None  # a table's row
    bare = unprompted(line)
    if not _is_shell(bare):
        return _behind_words(lines, at, line)
    if patterns.FLAGS.match(bare) and patterns.holds_sentence(bare):
        return None
    end = _command_end(lines, at)
    if end == at:
        return None  # an option that is commented out: no command begins with it
    text = "\n".join(lines[at:end])
    if has_command(text) or (patterns.DOTTED.match(bare) and end - at > 1):
        return "command", 0, end
    return ("command" if _SETS_UP.search(text) else "prose"), 0, end


def _behind_words(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    """A command after words and a colon: ``here is my command: deepspeed --module …``; not after a YAML key."""
    said = patterns.SAID.match(line)
    if said is None or patterns.COMMAND.match(line, said.end()) is None or "--" not in line[said.end() :]:
        return None
    near = (*lines[max(0, at - 1) : at], *lines[at + 1 : at + 2])
    if patterns.KEY.match(line) and any(patterns.KEY.match(other) for other in near):
        return None
    return "command", said.end(), _command_end(lines, at)


def _command_end(lines: list[str], at: int) -> int:
    """Line after the last one of a script: continuations, here-documents,
    arrays and quotes are followed to their end."""
    end = number = at
    blank = 0
    while number < len(lines):
        line = lines[number]
        bare = unprompted(line)
        stripped = bare.strip()
        goes_on = not stripped or stripped.startswith("#") or stripped in ("}", ")", "EOF") or number == at
        if not (goes_on or lines[number - 1].rstrip().endswith("\\") or _is_shell(bare)):
            return end
        blank = 0 if stripped else blank + 1
        if blank > 3:
            return end
        number = _stretch(lines, number, bare)
        if stripped and not (stripped.startswith("#") and not stripped.startswith(("#!", "#SBATCH"))):
            end = number
    return min(end, len(lines))


def _stretch(lines: list[str], number: int, bare: str) -> int:
    """The line after a here-document, an array or a quoted text of several lines that line ``number`` opens."""
    here = patterns.HERE.search(bare)
    if here:
        for following in range(number + 1, len(lines)):
            if lines[following].strip() == here[2]:
                return following + 1
        return len(lines)
    opened = bare.rfind("=(")
    closer = ")" if opened > 0 and bare[opened - 1 : opened].isidentifier() and ")" not in bare[opened:] else ""
    for quote in "'\"":
        rest = re.sub(r"\\.", "", bare)
        if not closer and rest.count(quote) % 2 and (rest.count("'") + rest.count('"')) < 40:
            closer = quote
    if not closer or bare.lstrip().startswith("#"):
        return number + 1
    for following in range(number + 1, min(number + 200, len(lines))):
        if closer in lines[following]:
            return following + 1
    return number + 1


def _json(lines: list[str], at: int, line: str, brackets: Brackets) -> tuple[str, int, int] | None:
    offset = 0
    if not patterns.JSON_OPEN.match(line):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if not line.rstrip().endswith("{") or not patterns.JSON_KEY.match(below) or '"' not in below:
            return None
        offset = line.rfind("{")
    end, interrupted = brackets.end(at, offset), brackets.interruption(at)
    if interrupted is not None and (end is None or interrupted < end):
        return ("json", offset, interrupted) if interrupted > at + 1 else None
    if end is None:
        return ("json", offset, len(lines)) if brackets.any_key(at, at + 50) else None
    if end > at:
        return ("json", offset, end + 1) if brackets.any_key(at, end + 1) else None
    if '":' not in line.replace(" ", "") or patterns.begins_log(line):
        return None
    measures = patterns.METRIC.search(line) and '"zero' not in line
    return ("metrics" if measures else "json"), offset, end + 1


class Brackets:
    """The braces and square brackets of a text's lines, counted in one pass when they are first needed."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._levels: list[int] = []  # brackets open after each line
        self._lower: list[int | None] = []  # the next line with a lower level
        self._keys: list[int] = []  # lines with a key before each line
        self._interruptions: list[int] = []

    def end(self, at: int, offset: int) -> int | None:
        """The line on which everything is closed that line ``at`` opens from ``offset`` on; None if it never is."""
        self._count()
        level = self._levels[at] - _opened(self._lines[at][offset:])
        line: int | None = at
        while line is not None and self._levels[line] > level:
            line = self._lower[line]
        return line

    def interruption(self, at: int) -> int | None:
        """The first blank line after ``at`` that a sentence follows."""
        self._count()
        place = bisect_right(self._interruptions, at)
        return self._interruptions[place] if place < len(self._interruptions) else None

    def any_key(self, start: int, end: int) -> bool:
        """Whether a line from ``start`` up to ``end`` has a quoted key."""
        self._count()
        return self._keys[min(end, len(self._lines))] > self._keys[start]

    def _count(self) -> None:
        if self._levels:
            return
        level = keys = 0
        for number, line in enumerate(self._lines):
            level += _opened(line)
            self._levels.append(level)
            self._keys.append(keys)
            keys += '":' in line or '" :' in line
            if number and not self._lines[number - 1].strip() and patterns.holds_sentence(line):
                self._interruptions.append(number - 1)
        self._keys.append(keys)
        self._lower = [None] * len(self._levels)
        waiting: list[int] = []
        for number, level in enumerate(self._levels):
            while waiting and self._levels[waiting[-1]] > level:
                self._lower[waiting.pop()] = number
            waiting.append(number)


def _opened(line: str) -> int:
    code = patterns.bare(line) if "{" in line or "[" in line or "}" in line or "]" in line else ""
    return code.count("{") + code.count("[") - code.count("}") - code.count("]")


def _log(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not patterns.is_logged(line) or (patterns.holds_sentence(line[:300]) and not patterns.begins_log(line)):
        return None
    if "Arguments(" in line or "Namespace(" in line:
        return _calls(lines, at, line)
    number = at + 1
    trace = "Traceback" in line
    while number < len(lines) and lines[number].strip():
        item = lines[number]
        trace = trace or "Traceback" in item
        if (
            not (trace or item[:1] in " \t")
            and (starts_command(item) or patterns.KEY.match(item) or patterns.holds_sentence(item))
            and not patterns.is_logged(item)  # last: it is the dearest by far
        ):
            break
        if item.startswith("```") or ("Arguments(" in item or "Namespace(" in item):
            break
        if patterns.LABEL.match(item) and not patterns.is_logged(item):
            break
        number += 1
    return "log", 0, number


def _calls(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    found = patterns.CALL.search(line)
    if found is None:
        return None
    end = _closing(lines, at, found.start())
    inline = end == at + 1 and bool(line[: found.start()].strip()) and "Namespace" not in line
    return ("python" if inline else "dump"), (found.start() if inline else 0), end


def _closing(lines: list[str], at: int, offset: int) -> int:
    """The line after all brackets opened from ``offset`` on are closed."""
    depth = 0
    for number in range(at, min(at + patterns.REACH, len(lines))):
        stripped = patterns.bare(lines[number][offset:] if number == at else lines[number])
        depth += sum(stripped.count(c) for c in "([{") - sum(stripped.count(c) for c in ")]}")
        if depth <= 0:
            return number + 1
    return min(at + patterns.REACH, len(lines))


def _versions(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not patterns.VERSIONS.match(line) or patterns.holds_sentence(line):
        return None
    number = at + 1
    while number < len(lines) and (
        patterns.VERSIONS.match(lines[number]) or patterns.VERSION_LINE.match(lines[number])
    ):
        number += 1
    return "versions", 0, number


def _python(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if at and lines[at - 1].lstrip().startswith('File "'):
        return None  # the source line that a traceback shows
    bare = line[4:] if line.startswith((">>> ", "... ")) else line
    if not patterns.PYTHON.match(bare.lstrip()):
        printed = "(" in line and patterns.CALL.search(line) and "=" in "".join(lines[at : at + 2])
        return _calls(lines, at, line) if printed else None
    number = end = at
    indent = len(bare) - len(bare.lstrip())
    while number < len(lines):
        item = lines[number]
        stripped = item.strip()
        if stripped:
            deeper = item[:1] in " \t" and len(item) - len(item.lstrip()) > indent
            if number > at and not deeper and not patterns.PYTHON_MORE.match(item.lstrip()):
                break
            if patterns.begins_log(item) or patterns.COMMAND.match(item) or patterns.begins_sentence(item):
                break
            number = end = _closing(lines, number, 0)
        elif number - end > 2:
            break
        else:
            number += 1
    return ("python", 0, end) if end > at else None


def _section(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    below = lines[at + 1] if at + 1 < len(lines) else ""
    if not patterns.SECTION.match(line) or not (patterns.PAIR.match(below) or below.lstrip()[:1] == "#"):
        return None
    number = at + 1
    while number < len(lines):
        item = lines[number]
        inside = (
            patterns.PAIR.match(item)
            or patterns.SECTION.match(item)
            or not item.strip()
            or item.lstrip()[:1] in "#;]"
            or item[:1] in " \t"
        )
        if not inside:
            break
        number += 1
    body = "\n".join(lines[at:number])
    return ("toml" if re.search(r"=[ \t]*(?:[\"'\[{]|true\b|false\b)", body) else "ini"), 0, number


def _table(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not patterns.TABLE.match(line) or not patterns.METRIC.search(line) or at + 1 >= len(lines):
        return None
    number = at + 1
    while number < len(lines) and _width(lines[number]) == _width(line) and any(map(str.isdigit, lines[number])):
        number += 1
    return ("metrics", 0, number) if number > at + 1 else None


def _width(line: str) -> int:
    return max(line.count(","), line.count("\t"))


def _cluster_status(lines: Sequence[str], at: int, line: str) -> tuple[str, int, int] | None:
    """What a cluster says of a job: it looks like YAML or a listing of packages, and is read like a log."""
    if not (_is_status_table(line) or _is_status(lines, at, line) or _is_container_state(lines, at, line)):
        return None
    end = at + 1
    while end < len(lines) and lines[end].strip():
        end += 1
    return "log", 0, end


def _is_status_table(line: str) -> bool:
    return "S" in line and any(columns <= set(line.split()) for columns in _STATUS_TABLES)


def _is_status(lines: Sequence[str], at: int, line: str) -> bool:
    """``Name:`` with ``Namespace:`` below, or the head of a pod's status."""
    below = [other.strip() for other in lines[at + 1 : at + 1 + _NEAR]]
    if line.startswith("Name:"):
        return any(other.startswith("Namespace:") for other in below)
    return line.strip() == POD_STATUS or (line.strip() == "status:" and POD_STATUS in below)


def _is_container_state(lines: Sequence[str], at: int, line: str) -> bool:
    """The state of a container, cut out of a description."""
    if not line.strip().startswith(("State:", "Last State:")):
        return False
    return any(other.strip().startswith(("Reason:", "Exit Code:")) for other in lines[at + 1 : at + 3])
