"""Conditions, templates and signal kinds of a page's fields; what is wrong with one is reported at its line."""

from __future__ import annotations

from trainmedic.kb.engine.expressions import Expression, compile_expression
from trainmedic.kb.engine.placeholders import Template, compile_template
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.pages.page import Field, Fields, PageError, suggestion


def condition(field: Field, words: Vocabulary, text: str | None = None) -> Expression:
    """The field's text (or ``text`` in its place) as a condition. Raises `PageError`."""
    try:
        return compile_expression(field.raw if text is None else text, words)
    except InvalidPage as error:
        raise _at(field, error) from None


def template(field: Field, words: Vocabulary, has_check: bool) -> Template:
    """The field's text, its placeholders compiled. Raises `PageError`."""
    try:
        return compile_template(field.either(), words, has_check)
    except PageError:
        raise
    except InvalidPage as error:
        raise _at(field, error) from None


def signal_kinds(fields: Fields, name: str, words: Vocabulary) -> tuple[str, ...]:
    """The list in the field ``name``, each a known kind. Raises `PageError`."""
    for item in fields.items(name):
        if (kind := item.text()) not in words.signals:
            raise item.error(f"unknown signal kind {kind!r}{suggestion(kind, words.signals)}")
    return fields.texts(name)


def _at(field: Field, error: InvalidPage) -> PageError:
    return field.error(f"{error.message} ({error.hint})" if error.hint else error.message)
