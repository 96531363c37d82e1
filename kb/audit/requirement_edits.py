"""Version changes as edits of requirement files. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from trainmedic.kb.model.environment import VersionChange
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.model.report import Edit
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.versions import permits

_ENDINGS = (".txt", ".in")
_OPERATORS = "=<>~!"


def requirement_edits(
    changes: Iterable[VersionChange], versions: Mapping[str, VersionFact], sources: Iterable[Source]
) -> Iterator[Edit]:
    """An edit for each change whose version was read from a requirement such as ``trl>=0.12``.

    Files with hashes are left alone: a new release has others, which only pip-compile and its like know.
    """
    hashed = {source.name for source in sources if "--hash=" in source.text}
    for change in changes:
        span = versions[change.package].span
        if span is None or span.attachment is None or span.attachment in hashed:
            continue
        if span.attachment.endswith(_ENDINGS) and (text := _raised(span, change.to)) is not None:
            yield Edit(span=span, replacement=text)


def _raised(span: Span, release: str) -> str | None:
    """The requirement with a release as its pin or its lower bound; None if the text is not a requirement.

    Bounds that permit the release stay.
    """
    cut = next((place for place, char in enumerate(span.text) if char in _OPERATORS), 0)
    name, clauses = span.text[:cut], [part.strip() for part in span.text[cut:].split(",")]
    if not name.strip() or " @ " in span.text:
        return None
    if clauses[0].startswith("==") and len(clauses) == 1:
        return f"{name}=={release}"
    rest = [part for part in clauses if part[:1] in "<!" and permits(part, release)]
    return name + ",".join((f">={release}", *rest))
