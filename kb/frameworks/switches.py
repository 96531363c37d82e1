"""Switches that a shell variable follows: ``--bf16 $EXTRA``.

A shell reader cannot know that ``--bf16`` takes no value. Where the catalogue says so, the variable is a word of its
own, which may hold any options: the switch is on, and what the command does not say is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Origin, Unresolved, VersionFact


def separate(
    options: Sequence[Option], framework: str | None, fact: VersionFact | None = None
) -> tuple[tuple[Option, ...], bool]:
    """The options with such switches bare, and whether there were any (the command is then known in part only)."""
    if framework is None:
        return tuple(options), False
    found = tuple(_bare(each) if _is_switch(each, framework, fact) else each for each in options)
    return found, any(new is not old for new, old in zip(found, options, strict=True))


def _is_switch(option: Option, framework: str, fact: VersionFact | None) -> bool:
    if option.origin is not Origin.FLAG or option.scope or option.quoted or not isinstance(option.value, Unresolved):
        return False
    if option.value_span is None or not option.value.raw.startswith("$"):
        return False
    info = catalogue.option(framework, option.key, fact.exact if fact else None)
    joined = option.span.text.partition(option.key)[2].startswith("=")
    return info is not None and info.switch and not joined


def _bare(option: Option) -> Option:
    end = option.key_span
    text = option.span.text
    own = Span(
        attachment=option.span.attachment, line=option.span.line, column=option.span.column,
        end_line=end.end_line, end_column=end.end_column, text=text[: text.find(end.text) + len(end.text)],
    )  # fmt: skip
    return replace(option, value=True, raw=None, span=own, value_span=None)
