"""Turns a cleaned write-up into a draft case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from trainmedic.ingest.drafts.draft import Draft, article_lines
from trainmedic.ingest.drafts.fields import Choose, fields_of, with_choices
from trainmedic.ingest.drafts.options import wrong_options
from trainmedic.ingest.drafts.refuted import refuted
from trainmedic.ingest.drafts.statements import statements
from trainmedic.ingest.drafts.store import KEY_DIGITS, digest_of
from trainmedic.ingest.items import Document
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.pipeline import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Aids:
    """What a draft is made with, beside the program: the cases by id that its statements are held against, and a model
    that chooses its sentences."""

    cases: Mapping[str, Case] = field(default_factory=lambda: MappingProxyType({}))
    choose: Choose | None = None


UNAIDED = Aids()


def draft_of(
    document: Document,
    evidence: Evidence | None = None,
    *,
    source: str = "",
    key: str = "",
    digest: str = "",
    related: Sequence[str] = (),
    aids: Aids = UNAIDED,
) -> Draft:
    """``evidence`` is that of the document's `article_lines`, if they were read already. ``key`` and ``digest``
    default to the document's origin and to the digest of its text."""
    draft = Draft(
        id="",
        title=document.title,
        origin=document.origin,
        source=source,
        key=key or document.url or document.origin,
        url=document.url,
        language=document.language,
        digest=digest or digest_of(document.text),
        blocks=document.blocks,
        related=tuple(related),
    )
    evidence = evidence or parse("\n".join(article_lines(document.title, document.blocks)))
    said = statements(draft)
    fields = fields_of(draft, evidence, said)
    if aids.choose is not None:
        fields = with_choices(draft, fields, aids.choose(draft.lines))
    draft = replace(draft, id=_identity(draft, evidence), fields=fields)
    marks = dict.fromkeys((*refuted(draft, said, aids.cases), *wrong_options(draft, said)))
    return replace(draft, marks=tuple(sorted(marks, key=lambda mark: (mark.claim.first_line, mark.claim.text))))


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
