"""The kind of a file, a fenced block or a text as a whole. `kb.parse.text.stretches` tells line by line."""

from __future__ import annotations

from trainmedic.kb.data_files import load_table
from trainmedic.kb.parse.source import Piece
from trainmedic.kb.parse.text import patterns
from trainmedic.kb.parse.text.compressed import plain_name

_WORDS = load_table("parse/data/words.toml")
_INFO = {name: kind for kind, names in _WORDS["fences"].items() for name in names}
_ENDINGS = {ending: kind for kind, endings in _WORDS["endings"].items() for ending in endings}
POD_STATUS = "containerStatuses:"
"""In YAML or JSON that is the state of a pod instead of a configuration."""
HANG_RECORDS = ('"pg_config"', '"short_filename"')
"""In JSON that is a dump of a flight recorder or of py-spy."""


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
    base = plain_name(name.rpartition("/")[2].lower())
    if base.startswith(("requirements", "constraints", "pylock.")) or base in _WORDS["packages"]["listings"]:
        return "versions"
    if base.startswith("dockerfile"):
        return "log"
    kind = _ENDINGS.get(base[base.rfind(".") :] if "." in base else "", "")
    if kind == "json" and _jsonl(text):
        return "metrics"
    if kind in ("yaml", "json") and POD_STATUS.rstrip(":") in text:
        return "log"
    if kind in ("json", "") and text.lstrip()[:1] in ("{", "[") and any(mark in text for mark in HANG_RECORDS):
        return "log"
    configures = kind in ("yaml", "json", "toml", "ini")
    if configures and is_command(text[:4000]) and not any(map(patterns.KEY.match, text.split("\n"))):
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
    return starts_command(unprompted(line))


def is_log(text: str) -> bool:
    """Whether a text has log lines and no command."""
    return any(map(patterns.begins_log, text.split("\n"))) and not has_command(text)


def has_command(text: str) -> bool:
    return any(starts_command(unprompted(line)) or patterns.FLAGS.match(line) for line in text.split("\n"))


def unprompted(line: str) -> str:
    prompt = patterns.PROMPT.match(line)
    return line[prompt.end() :] if prompt else line


def starts_command(line: str) -> bool:
    return patterns.COMMAND.match(line) is not None or (
        line.rstrip().endswith("\\") and (" --" in line or patterns.ENVIRONMENT.match(line) is not None)
    )


def of_fence(label: str, name: str, body: Piece) -> tuple[str, Piece]:
    """The kind of a fenced block, and what of it is read. ``""`` and ``log`` are read line by line."""
    kind = by_info(label) or (by_name(name, body.text) if name else "")
    if kind in ("", "markdown"):
        return whole(body.text), body
    if kind == "command" and not is_log(body.text):
        body = unprompt(body)
        return ("command" if has_command(body.text) else whole(body.text) or "command"), body
    if kind == "command":
        return "log", body  # a label of habit: issue forms put it before everything
    return ("command" if kind in ("yaml", "python", "json") and is_command(body.text) else kind), body


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
    return piece.without(taken)
