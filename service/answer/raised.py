"""The code that raised an exception, in the release that did: as a section of the answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.error_messages.explain import MessageMatch
from trainmedic.kb.fences import fence_around
from trainmedic.kb.model.environment import SourceChange
from trainmedic.kb.sources.raised import Raised
from trainmedic.service.answer.citations import Citations, code
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Section

MOST_SHOWN = 2
MOST_WIDE = 160


def raised_section(
    raised: Sequence[Raised],
    changed: Sequence[SourceChange],
    printed: Sequence[MessageMatch],
    citations: Citations,
) -> tuple[Section, ...]:
    """The lines around each place whose message is not explained already, and what changed on the way there."""
    language = citations.language
    parts, items, markers = [], [], []
    for each in [one for one in raised if not _is_explained(one, printed)][:MOST_SHOWN]:
        markers.append(citations.place(each.span))
        items.append(f"{said(each, language)} [{markers[-1]}]")
        parts.append(f"{items[-1]}:\n\n{_fenced('python', marked(each))}")
    for change in changed[:MOST_SHOWN]:
        where, name = code(f"{change.path}:{change.line}"), code(change.name)
        items.append(messages("raised.changed", language, package=change.package, place=where, function=name))
        parts.append(f"{items[-1]}\n\n{_fenced('diff', change.text)}")
    if not parts:
        return ()
    heading, body = messages("headings.raised", language), "\n\n".join(parts)
    return (Section(kind="raised", heading=heading, body=body, items=tuple(items), markers=tuple(markers)),)


def said(each: Raised, language: str) -> str:
    """Where it was raised and under which condition, as a sentence."""
    name = "raised" if each.innermost else "called"
    return messages(
        f"raised.{name}{'_if' if each.condition else ''}",
        language,
        package=each.code.package,
        version=each.code.version,
        place=code(f"{each.code.path}:{each.line}"),
        function=code(each.code.symbol or each.code.path.rpartition("/")[2]),
        condition=code(each.condition),
    )


def marked(each: Raised) -> str:
    """The lines with their numbers; the one that raises has an arrow."""
    lines = each.code.text.split("\n")
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(
        f"{'→' if number == each.line else ' '} {number} {line[depth : depth + MOST_WIDE]}".rstrip()
        for number, line in enumerate(lines, start=each.code.first)
    )


def _fenced(kind: str, text: str) -> str:
    fence = fence_around(text)
    return f"{fence}{kind}\n{text}\n{fence}"


def _is_explained(each: Raised, printed: Sequence[MessageMatch]) -> bool:
    name = each.code.symbol.rpartition(".")[2]
    return any(
        match.entry.package == each.code.package and match.place.function.rpartition(".")[2] == name
        for match in printed
    )
