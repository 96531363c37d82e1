"""Messages with measured values: ``{micro_batch}``, ``{metric("kl") / world_size}``; ``{{`` and ``}}`` are braces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainmedic.kb.engine.expressions import Expression, compile_expression, fact_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.values import UNKNOWN, show
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.report import Text

_PIECE = regex(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_UNKNOWN = {"en": "unknown", "zh": "未知"}


@dataclass(frozen=True, slots=True)
class Template:
    """A text in two languages whose placeholders are compiled."""

    source: Text
    en: tuple[str | tuple[str, Expression], ...]
    zh: tuple[str | tuple[str, Expression], ...]

    def render(self, facts: Facts, values: Mapping[str, str] | None = None) -> Text:
        """The text with what was measured; ``values`` goes before the facts."""
        return Text(en=_render(self.en, facts, values or {}, "en"), zh=_render(self.zh, facts, values or {}, "zh"))


def compile_template(text: Text, words: Vocabulary, own: bool = False) -> Template:
    """Compile both languages. ``own``: the rule is a module, whose own placeholder names are only known when it runs.

    Raises `InvalidPage` for a placeholder that is not an expression.
    """
    return Template(text, _pieces(text.en, words, own), _pieces(text.zh, words, own))


def _pieces(text: str, words: Vocabulary, own: bool) -> tuple[str | tuple[str, Expression], ...]:
    pieces: list[str | tuple[str, Expression]] = []
    at = 0
    for match in _PIECE.finditer(text):
        pieces.append(text[at : match.start()])
        at = match.end()
        if match[0] in ("{{", "}}"):
            pieces.append(match[0][0])
        elif match[1] is None:
            raise InvalidPage(f"a lone {match[0]!r} in {text[:60]!r}; write {match[0] * 2!r} for a brace")
        elif own and match[1].isidentifier() and match[1] not in words.names:
            pieces.append((match[1], compile_expression('"?"', words)))
        elif match[1] in words.names:
            pieces.append((match[1], fact_expression(match[1], ("name", match[1]))))
        else:
            pieces.append((match[1], compile_expression(match[1], words)))
    pieces.append(text[at:])
    return tuple(piece for piece in pieces if piece)


def _render(
    pieces: tuple[str | tuple[str, Expression], ...], facts: Facts, values: Mapping[str, str], language: str
) -> str:
    parts = []
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(piece)
        elif piece[0] in values:
            parts.append(values[piece[0]])
        else:
            value = piece[1].evaluate(facts)
            parts.append(_UNKNOWN[language] if value is UNKNOWN else show(value))
    return "".join(parts)
