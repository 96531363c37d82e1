"""How to ask for a missing fact, in both languages. Facts are named as in `kb.model.report.Missing`."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.messages import LANGUAGES, load_messages
from trainmedic.kb.model.report import Missing, Text

_MESSAGES = load_messages("trainmedic.kb.engine")


def missing(fact: str, rule_title: Text, spellings: Sequence[str] = (), note: Text | None = None) -> Missing:
    """The question for ``fact``, and why the rule needs it. ``spellings``: the framework's own names of a setting.
    ``note``: what is known of a setting that is not written."""
    kind, _, name = fact.partition(":")
    if kind in ("setting", "option"):
        ask = _text("ask.setting", name=spellings[0] if spellings else name, note=note or _text("paste"))
    elif kind == "stacks":
        ranks = _text("every_rank") if name == "*" else _text("some_ranks", ranks=name.replace("+", ", "))
        ask = _text("ask.stacks", ranks=ranks)
    else:
        known = f"ask.{kind}"
        ask = _text(known, name=name) if known in _MESSAGES else _text("ask.other", fact=fact)
    return Missing(fact=fact, why=_text("why", title=rule_title), ask=ask)


def _text(message: str, /, **values: Text | str) -> Text:
    def said(language: str) -> str:
        of_language = {key: value if isinstance(value, str) else value.get(language) for key, value in values.items()}
        return _MESSAGES(message, language, **of_language)

    return Text(**{language: said(language) for language in LANGUAGES})
