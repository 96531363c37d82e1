"""What a line, a fence's label, a file name or a whole text is likely to be, for `kb.parse.segment`."""

from __future__ import annotations

import re

from trainmedic.kb.data_files import load_table
from trainmedic.kb.parse import key_value_lines, patterns
from trainmedic.kb.parse.source import Piece

_WORDS = load_table("parse/data/words.toml")
_INFO = {name: kind for kind, names in _WORDS["fences"].items() for name in names}
_ENDINGS = {ending: kind for kind, endings in _WORDS["endings"].items() for ending in endings}


def is_info(text: str) -> bool:
    """Whether a fence's first line is a label (a language, maybe a file name) rather than text."""
    words = text.split()
    return (
        not words
        or words[0].lower().strip("{}.") in _INFO
        or (len(words) <= 2 and "=" not in text and "--" not in text)
    )


def by_info(text: str) -> str:
    words = text.replace("{", " ").replace("}", " ").split()
    return _INFO.get(words[0].lower().strip("."), "") if words else ""


def by_name(name: str, text: str) -> str:
    """The kind of a file by its name, else by its content; ``""`` reads it like a question."""
    base = name.rpartition("/")[2].lower()
    if base.startswith(("requirements", "constraints", "pylock.")) or base in _WORDS["packages"]["listings"]:
        return "versions"
    if base.startswith("dockerfile"):
        return "log"
    kind = _ENDINGS.get(base[base.rfind(".") :] if "." in base else "", "")
    if kind == "json" and _jsonl(text):
        return "metrics"
    if kind in ("yaml", "json", "toml", "ini") and is_command(text[:4000]) and not patterns.KEY.search(text):
        return "command"
    return kind or (whole(text) if base.endswith(".txt") or "." not in base else "")


def _jsonl(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    return first.startswith(('{"', "{}")) and first.rstrip().endswith("}") and rest.lstrip().startswith("{")


def whole(text: str) -> str:
    """The kind of an unlabelled text if all of it is one thing, else ``""``."""
    head = text[:20_000]
    lines = [line for line in head.split("\n") if line.strip()]
    if not lines:
        return ""
    if _jsonl(text):
        return "metrics"
    if lines[0].lstrip()[:1] in "{[" and '"' in head and len(lines) > 1 and patterns.JSON_OPEN.match(lines[0]):
        return "json" if "{'" not in lines[0] and text.rstrip()[-1:] in "}]" else ""
    if lines[0].startswith("#!") and "sh" in lines[0]:
        return "command"
    return ""


def is_command(text: str) -> bool:
    """Whether the first line that is not blank or a comment starts a program of interest."""
    line = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    prompt = patterns.PROMPT.match(line)
    return _starts(line[prompt.end() :] if prompt else line)


def is_log(text: str) -> bool:
    """Whether a text has log lines and no command."""
    return any(patterns.LOG.match(line[:2000]) for line in text.split("\n")) and not has_command(text)


def has_command(text: str) -> bool:
    return any(
        _starts(patterns.PROMPT.sub("", line, count=1)) or patterns.FLAGS.match(line) for line in text.split("\n")
    )


def _starts(line: str) -> bool:
    return patterns.COMMAND.match(line) is not None or (
        line.rstrip().endswith("\\") and (" --" in line or patterns.ENVIRONMENT.match(line) is not None)
    )


def start(lines: list[str], at: int) -> tuple[str, int, int] | None:
    """The stretch that begins at line ``at``: (kind, column, line after its end), or None for plain text."""
    line = lines[at]
    for find in (_command, _json, _log, _versions, _python, _section, key_value_lines.start, _table):
        found = find(lines, at, line)
        if found is not None:
            return found
    return None


def _command(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if line.lstrip()[:1] == "|" and line.count("|") > 1:
        return None  # a table's row
    prompt = patterns.PROMPT.match(line)
    bare = line[prompt.end() :] if prompt else line
    if not (_starts(bare) or patterns.SHELL.match(bare) or patterns.FLAGS.match(bare) or patterns.DOTTED.match(bare)):
        return _behind_words(lines, at, line)
    if patterns.FLAGS.match(bare) and patterns.WORDS.search(bare):
        return None
    end = _command_end(lines, at)
    if end == at:
        return None  # an option that is commented out: no command begins with it
    text = "\n".join(lines[at:end])
    if has_command(text) or (patterns.DOTTED.match(bare) and end - at > 1):
        return "command", 0, end
    return ("command" if re.search(r"^\s*(?:export[ \t]+\w+=|#SBATCH)", text, re.MULTILINE) else "prose"), 0, end


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
        prompt = patterns.PROMPT.match(line)
        bare = line[prompt.end() :] if prompt else line
        stripped = bare.strip()
        if stripped and not stripped.startswith("#") and number > at:
            shellish = (
                _starts(bare) or patterns.SHELL.match(bare) or patterns.FLAGS.match(bare) or patterns.DOTTED.match(bare)
            )
            if not (shellish or lines[number - 1].rstrip().endswith("\\") or stripped in ("}", ")", "EOF")):
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
    closer = ")" if re.search(r"\w=\([^)]*$", bare) else ""
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


def _json(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    offset = 0
    if not patterns.JSON_OPEN.match(line):
        if (
            not line.rstrip().endswith("{")
            or at + 1 >= len(lines)
            or not patterns.JSON_KEY.match(lines[at + 1])
            or '"' not in lines[at + 1]
        ):
            return None
        offset = line.rfind("{")
    depth = 0
    for number in range(at, min(at + patterns.REACH * 5, len(lines))):
        stripped = patterns.STRING.sub("", lines[number][offset:] if number == at else lines[number])
        depth += stripped.count("{") + stripped.count("[") - stripped.count("}") - stripped.count("]")
        if depth <= 0:
            text = lines[at] if number == at else ""
            if number == at and ('":' not in text.replace(" ", "") or patterns.LOG.match(text)):
                return None
            if number > at and not any('":' in item or '" :' in item for item in lines[at : number + 1]):
                return None
            if number == at and patterns.METRIC.search(text) and '"zero' not in text:
                return "metrics", offset, number + 1
            return "json", offset, number + 1
        if (
            number > at
            and not lines[number].strip()
            and number + 1 < len(lines)
            and patterns.WORDS.search(lines[number + 1])
        ):
            return ("json", offset, number) if number > at + 1 else None
    return ("json", offset, len(lines)) if any('":' in item for item in lines[at : at + 50]) else None


def _log(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not patterns.LOG.search(line[:2000]) or (patterns.WORDS.search(line[:300]) and not patterns.LOG.match(line)):
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
            and (_starts(item) or patterns.KEY.match(item) or patterns.WORDS.search(item))
            and not patterns.LOG.search(item[:2000])  # last: it is the dearest by far
        ):
            break
        if item.startswith("```") or ("Arguments(" in item or "Namespace(" in item):
            break
        if patterns.LABEL.match(item) and not patterns.LOG.search(item[:2000]):
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
        stripped = patterns.STRING.sub("", lines[number][offset:] if number == at else lines[number])
        depth += sum(stripped.count(c) for c in "([{") - sum(stripped.count(c) for c in ")]}")
        if depth <= 0:
            return number + 1
    return min(at + patterns.REACH, len(lines))


def _versions(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if not patterns.VERSIONS.match(line) or patterns.WORDS.search(line):
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
        return (
            _calls(lines, at, line)
            if "(" in line and patterns.CALL.search(line) and "=" in "".join(lines[at : at + 2])
            else None
        )
    number = end = at
    indent = len(bare) - len(bare.lstrip())
    while number < len(lines):
        item = lines[number]
        stripped = item.strip()
        if stripped:
            if (
                number > at
                and not (item[:1] in " \t" and len(item) - len(item.lstrip()) > indent)
                and not patterns.PYTHON_MORE.match(item.lstrip())
            ):
                break
            if patterns.LOG.match(item) or patterns.COMMAND.match(item) or patterns.WORDS.match(item):
                break
            number = end = _closing(lines, number, 0)
        elif number - end > 2:
            break
        else:
            number += 1
    return ("python", 0, end) if end > at else None


def _section(lines: list[str], at: int, line: str) -> tuple[str, int, int] | None:
    if (
        not patterns.SECTION.match(line)
        or at + 1 >= len(lines)
        or not (patterns.PAIR.match(lines[at + 1]) or lines[at + 1].lstrip()[:1] == "#")
    ):
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
    width = max(line.count(","), line.count("\t"))
    number = at + 1
    while (
        number < len(lines)
        and max(lines[number].count(","), lines[number].count("\t")) == width
        and any(c.isdigit() for c in lines[number])
    ):
        number += 1
    return ("metrics", 0, number) if number > at + 1 else None


def unprompt(piece: Piece) -> Piece:
    """Remove prompts (``$ ``, ``> ``, ``!``, ``user@host:~# ``) before commands."""
    lines = piece.text.split("\n")
    if not any(patterns.PROMPT.match(line) for line in lines):
        return piece
    taken: list[int] = []
    for number, line in enumerate(lines):
        inside = number > 0 and lines[number - 1].rstrip().endswith("\\")
        found = patterns.SECOND_PROMPT.match(line) if inside else patterns.PROMPT.match(line)
        taken.append(0 if found is None or line.lstrip().startswith(("%env", "!=")) else found.end())
    return _without(piece, lines, taken)


def unindent(piece: Piece, width: int) -> Piece:
    """Remove up to ``width`` leading blanks or quote marks from each line."""
    lines = piece.text.split("\n")
    taken = [min(width, len(line) - len(line.lstrip(" \t>"))) for line in lines]
    return _without(piece, lines, taken) if any(taken) else piece


def _without(piece: Piece, lines: list[str], taken: list[int]) -> Piece:
    before = piece.prefixes or ("",) * len(lines)
    prefixes = tuple(old + line[:count] for old, line, count in zip(before, lines, taken, strict=True))
    return Piece(
        source=piece.source,
        text="\n".join(line[count:] for line, count in zip(lines, taken, strict=True)),
        line=piece.line,
        column=piece.column + taken[0],
        prefixes=prefixes,
    )
