"""Values that a cause's fix sets, read from its code spans: ``bf16: true``, ``--max_grad_norm 1.0``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.run import Option

_SPAN = regex(r"`([^`\n]+)`")
_ASSIGNMENT = regex(r"(?:^|\s)-{0,2}\+{0,2}([A-Za-z][\w.-]*)(?:\s*[=:]\s*|\s+)([\w.+-]+)$")

_LINE = regex(
    r"""^(?P<sign>[+-])[ \t]*(?P<dashes>-{2})?(?P<quote>"?)(?P<name>[A-Za-z][\w.-]*)(?P=quote)"""
    r"""(?:(?:[ \t]*[:=](?!=)[ \t]*|[ \t]+)(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s,"'{}\[\]()\\]+))?"""
    r""",?[ \t]*\\?[ \t]*(?:\#.*)?$""",
    re.MULTILINE,
)

FixValue = tuple[str, str]
"""An option's plain name and its value in lower case."""
WrittenOptions = Mapping[str, Sequence[Option]]
"""Options by their plain names."""


def fix_values(case: Case) -> tuple[FixValue, ...]:
    """The assignments among the code spans of the fix."""
    values = []
    for span in _SPAN.findall(case.section("fix", "en")):
        match = _ASSIGNMENT.search(span.strip())
        if match:
            values.append((plain_name(match[1]), match[2].lower()))
    return tuple(dict.fromkeys(values))


def changed_by(diff: str) -> Mapping[str, tuple[str | None, str | None]]:
    """The options with a line of their own that a diff changes: value before and after, None where there is none."""
    values: dict[str, list[str | None]] = {}
    for match in _LINE.finditer(diff):
        if match["value"] is not None or match["dashes"]:
            value = (match["value"] or "true").strip("\"'")
            values.setdefault(match["name"], [None, None])[match["sign"] == "+"] = value
    return {name: (before, after) for name, (before, after) in values.items() if before != after}


def plain_name(key: str) -> str:
    """An option's name without dashes and without the groups before it."""
    return key.rpartition(".")[2].replace("-", "_").lower()


def written_options(options: Iterable[Option]) -> WrittenOptions:
    """The options by their plain names, in order."""
    written: dict[str, list[Option]] = {}
    for option in options:
        written.setdefault(plain_name(option.key), []).append(option)
    return written


def already_written(values: Iterable[FixValue], options: WrittenOptions) -> bool:
    """Whether the options already have every value of a fix that they write at all, and at least one."""
    written = [(value, option) for name, value in dict(values).items() for option in options.get(name, ())]
    return bool(written) and all(_same(value, option) for value, option in written)


def _same(value: str, option: Option) -> bool:
    raw = option.raw if option.raw is not None else "true"
    return value in (raw.strip("'\"").lower(), str(option.value).lower())
