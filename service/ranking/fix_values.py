"""What a cause's fix asks to write, read from its code spans: ``bf16: true``, ``--max_grad_norm 1.0``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.run import Option

_SPAN = regex(r"`([^`\n]+)`")
_ASSIGNMENT = regex(r"(?:^|\s)-{0,2}\+{0,2}([A-Za-z][\w.-]*)(?:\s*[=:]\s*|\s+)([\w.+-]+)$")

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
