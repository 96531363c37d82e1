"""Turns a cleaned write-up into a draft case: what the parser read in it, each fact with its passage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainmedic.ingest.drafts.draft import FIELDS, PREFIX, Draft, DraftField, Passage, article_lines
from trainmedic.ingest.drafts.options import unknown_options
from trainmedic.ingest.drafts.proposal import proposed
from trainmedic.ingest.drafts.refuted import refuted
from trainmedic.ingest.drafts.store import KEY_DIGITS, digest_of
from trainmedic.ingest.items import Document
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.pipeline import parse

LONGEST_ERROR = 200
"""Code points of an error message that is searched for."""


def draft_of(
    document: Document,
    evidence: Evidence | None = None,
    *,
    source: str = "",
    key: str = "",
    digest: str = "",
    related: Sequence[str] = (),
    cases: Sequence[Case] = (),
) -> Draft:
    """``evidence`` is that of the document's `article_lines`, if they were read already. ``key`` and ``digest``
    default to the document's origin and to the digest of its text. What is said is held against those ``cases``
    that are ``related``."""
    evidence = evidence or parse("\n".join(article_lines(document.title, document.blocks)))
    key = key or document.url or document.origin
    fields = sorted(dict.fromkeys(_fields(evidence)), key=lambda field: FIELDS.index(field.name))
    draft = Draft(
        id=_identity(document.title, evidence, f"{source}\0{key}"),
        title=document.title,
        origin=document.origin,
        source=source,
        key=key,
        url=document.url,
        language=document.language,
        digest=digest or digest_of(document.text),
        blocks=document.blocks,
        fields=tuple(fields),
        related=tuple(related),
    )
    marks = dict.fromkeys((*refuted(draft, cases), *unknown_options(document.blocks, evidence)))
    draft = replace(draft, check=proposed(draft, evidence))
    return replace(draft, marks=tuple(sorted(marks, key=lambda mark: (mark.claim.first_line, mark.claim.text))))


def _fields(evidence: Evidence) -> Iterator[DraftField]:
    run = evidence.run
    for name in FIELDS[:4]:
        fact = getattr(run, name)
        if fact is not None and fact.span is not None and not fact.span.default:
            yield DraftField(name=name, value=fact.value, passages=(_passage(fact.span),))
    for package, version in evidence.versions.items():
        if version.exact is not None and version.span is not None:
            yield DraftField(name="version", value=f"{package} {version.exact}", passages=(_passage(version.span),))
    for setting, value in sorted(run.settings.items()):
        span = value.place
        if span is not None and not span.default:
            written = "" if value.value is None else f" = {_written(value.value)}"
            yield DraftField(name="setting", value=f"{setting}{written}", passages=(_passage(span),))
    places: dict[str, dict[Passage, None]] = {}
    for signal in evidence.signals:
        places.setdefault(signal.kind, {})[_passage(signal.span)] = None
    for kind, passages in sorted(places.items()):
        yield DraftField(name="signal", value=kind, passages=tuple(passages))
    for trace in evidence.tracebacks:
        message = next(iter(trace.message.strip().splitlines()), "")
        if trace.root and message:  # the exceptions that began the failures, as users paste them
            passage = Passage(first_line=trace.span.line, last_line=trace.span.end_line, text=message)
            yield DraftField(name="error", value=f"{trace.exception}: {message}"[:LONGEST_ERROR], passages=(passage,))


def _passage(span: Span) -> Passage:
    return Passage(first_line=span.line, last_line=span.end_line, text=span.text)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _identity(title: str, evidence: Evidence, place: str) -> str:
    """Latin words of the title, led by the framework; the end follows from where the write-up is, not from its text."""
    words = _latin_words(title)
    framework = evidence.run.framework
    lead = [word for word in _latin_words(framework.value) if word not in words] if framework else []
    digest = hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{PREFIX}{'-'.join([*lead, *words][:8]) or 'article'}-{digest[:KEY_DIGITS]}"


def _latin_words(text: str) -> list[str]:
    letters = (letter if letter.isascii() and letter.isalnum() else " " for letter in text.lower())
    return "".join(letters).split()
