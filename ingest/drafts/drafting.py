"""Turns a cleaned write-up into a draft case."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmedic.ingest.document import Document
from trainmedic.ingest.drafts.contradictions import Reference, marks_of
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.reading import Choose, fields_of, with_choices
from trainmedic.ingest.drafts.store import KEY_DIGITS, digest_of
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.pipeline import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a draft is made with, beside the program: the knowledge that its statements are held against, and a model
    that chooses its sentences."""

    knowledge: Reference | None = None
    choose: Choose | None = None


UNAIDED = Means()
"""The program alone: no marks, no model."""


def draft_of(
    document: Document,
    means: Means = UNAIDED,
    *,
    source: str = "",
    key: str = "",
    digest: str = "",
    related: Sequence[str] = (),
) -> Draft:
    """``key`` and ``digest`` default to the document's origin and to the digest of its text."""
    key = key or document.url or document.origin
    draft = Draft(
        id="",
        title=document.title,
        origin=document.origin,
        source=source,
        key=key,
        url=document.url,
        language=document.language,
        digest=digest or digest_of(document.text),
        blocks=document.blocks,
        related=tuple(related),
    )
    evidence = parse("\n".join(draft.lines))
    fields = fields_of(draft, evidence)
    if means.choose is not None:
        fields = with_choices(draft, fields, means.choose(draft.lines))
    draft = replace(draft, id=_identity(draft, evidence), fields=fields)
    return replace(draft, marks=marks_of(draft, evidence, means.knowledge)) if means.knowledge is not None else draft


def _identity(draft: Draft, evidence: Evidence) -> str:
    """Latin words of the title, led by the framework; the end follows from where the write-up is, not from its text."""
    words = _latin_words(draft.title)
    framework = evidence.run.framework
    lead = [word for word in _latin_words(framework.value) if word not in words] if framework else []
    place = hashlib.sha256(f"{draft.source}\0{draft.key}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"draft-{'-'.join([*lead, *words][:8]) or 'article'}-{place[:KEY_DIGITS]}"


def _latin_words(text: str) -> list[str]:
    letters = (letter if letter.isascii() and letter.isalnum() else " " for letter in text.lower())
    return "".join(letters).split()
