"""Citations of an answer: markers for cases, rules and places, and pasted text made safe for Markdown. Pure."""

from __future__ import annotations

import re

from trainmedic.kb.engine.mechanism import Mechanism, Origin, origin_id
from trainmedic.kb.fences import fence_around
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Text
from trainmedic.kb.parse.text.pictures import MARK
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Citation, CitationKind
from trainmedic.service.dialogue.what_if import Effect

MAX_QUOTE = 160
"""Code points of one quoted place."""
_ORDINARY = regex(r"[\w.\-/ +,@=~()（）]{1,200}")
_BRACKETS = str.maketrans("[]<>`", "［］‹›'")
_LINK = regex(r"\[([^\]\n]*)\]\(([^)\n]*)\)")
_CODE = regex(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
# Not followed by a parenthesis: that would be a link.
_MARKER = regex(r"\[(\d{1,4})\](?!\()")
_MARKS = regex(r"^```[^\n]*\n?|\*\*|`+|^#+\s*|^>\s?", re.MULTILINE)


class Citations:
    """Assigns markers: one for each cited thing, in the order of first use."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._found: dict[tuple[str, str], Citation] = {}

    def case(self, case: Case) -> int:
        url = case.sources[0].url if case.sources else None
        return self._marker("case", case.id, case.title.get(self.language), url, None)

    def mechanism(self, mechanism: Mechanism, origin: Origin | None = None) -> int:
        """The marker of a mechanism or of one of its origins."""
        url = mechanism.sources[0].url if mechanism.sources else None
        if origin is None:
            return self._marker("case", mechanism.id, mechanism.title.get(self.language), url, None)
        return self._marker("case", origin_id(mechanism, origin), origin.title.get(self.language), url, None)

    def rule(self, finding: Finding) -> int:
        return self._marker("rule", finding.rule_id, finding.title.get(self.language), None, None)

    def effect(self, effect: Effect) -> int:
        """The marker of a rule that a supposed change affects."""
        return self.rule_page(effect.rule_id, effect.title)

    def rule_page(self, rule_id: str, title: Text) -> int:
        """The marker of a rule that did not fire."""
        return self._marker("rule", rule_id, title.get(self.language), None, None)

    def place(self, span: Span) -> int:
        name = place(span, self.language)
        return self._marker("input", f"{span.attachment or ''}:{span.line}:{span.column}", name, None, quote(span))

    def all(self) -> tuple[Citation, ...]:
        return tuple(self._found.values())

    def _marker(self, kind: CitationKind, id: str, title: str, url: str | None, quoted: str | None) -> int:
        key = (kind, id)
        if key not in self._found:
            number = len(self._found) + 1
            self._found[key] = Citation(marker=number, kind=kind, id=id, title=title, url=url, quote=quoted)
        return self._found[key].marker


def place(span: Span, language: str) -> str:
    """``train.sh:12:3``, or the question's own name."""
    if span.attachment is None:
        return f"{messages('question', language)}:{span.line}:{span.column}"
    read = messages("from_picture", language) if span.attachment.endswith(MARK) else ""
    return f"{shown_name(span.attachment.removesuffix(MARK))}:{span.line}:{span.column}{read}"


def shown_name(name: str) -> str:
    """The name of a pasted text, safe in Markdown: unusual names become code without brackets.

    The user chooses this name and every answer shows it: it must not look like a citation, a link or a tag.
    """
    if _ORDINARY.fullmatch(name) and not name.lower().startswith("www."):
        return name
    return f"`{' '.join(name.translate(_BRACKETS).split())}`"


def quote(span: Span, most: int = MAX_QUOTE) -> str:
    """The pasted text on one line, shortened."""
    return _line(span.text, most)


def harmless(text: str) -> str:
    """Someone else's text on one line, shortened, without what Markdown would take for a link, a tag or a citation."""
    return _line(text.translate(_BRACKETS)).replace("*", "∗")


def _line(text: str, most: int = MAX_QUOTE) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def plain_text(markdown: str) -> str:
    """Markdown without its marks; links keep their text."""
    return _MARKS.sub("", _LINK.sub(r"\1", markdown)).strip()


def code(text: str) -> str:
    """Inline code, whatever characters it holds."""
    ticks = fence_around(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"
