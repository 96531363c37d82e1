"""What a cause's fix asks to write, read from its code spans: ``bf16: true``, ``--max_grad_norm 1.0``. Pure."""

from __future__ import annotations

import re

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.run import Option

_SPAN = re.compile(r"`([^`\n]+)`")
_ASSIGNMENT = re.compile(r"(?:^|\s)-{0,2}\+{0,2}([A-Za-z][\w.-]*)(?:\s*[=:]\s*|\s+)([\w.+-]+)$")

FixValue = tuple[str, str]
"""An option's plain name and its value in lower case."""


def fix_values(case: Case) -> tuple[FixValue, ...]:
    """The assignments among the code spans of the fix."""
    values = []
    for span in _SPAN.findall(case.section("fix", "en")):
        match = _ASSIGNMENT.search(span.strip())
        if match:
            values.append((plain_name(match[1]), match[2].lower()))
    return tuple(dict.fromkeys(values))


def plain_name(key: str) -> str:
    """An option's name without dashes and without the groups before it."""
    return key.rpartition(".")[2].replace("-", "_").lower()


def already_written(values: tuple[FixValue, ...], options: tuple[Option, ...]) -> bool:
    """Whether the options already have every value of a fix that they write at all, and at least one."""
    wanted = dict(values)
    written = [(wanted[name], option) for option in options if (name := plain_name(option.key)) in wanted]
    return bool(written) and all(_same(value, option) for value, option in written)


def _same(value: str, option: Option) -> bool:
    raw = option.raw if option.raw is not None else "true"
    return value in (raw.strip("'\"").lower(), str(option.value).lower())
