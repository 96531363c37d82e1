"""Write-ups and discussions to threads: without persons, read once, summarised, cut into passages. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from trainmedic.ingest.drafts.draft import article_lines
from trainmedic.ingest.drafts.write_up import CAUSE, REPLIES, write_up
from trainmedic.ingest.items import Block, Discussion, Document, Raw
from trainmedic.ingest.personal import discussion_without_persons, without_persons
from trainmedic.ingest.read.blocks import blocks, canonical
from trainmedic.ingest.read.clean import document
from trainmedic.ingest.threads.summary import of_discussion, of_document
from trainmedic.kb.language import language_of
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.threads.thread import Thread

LONGEST_PASSAGE = 1_200
MOST_PASSAGES = 12
LONGEST_LINE = MOST_PASSAGES * LONGEST_PASSAGE
"""Code points of a line that are read: no more of it could become passages."""
LONGEST_TEXT = 12_000
"""Code points of one thread that are read for facts; of one that becomes a draft everything is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a write-up. ``parts`` are its blocks before boilerplate was removed; ``evidence`` is that of the
    lines of ``document``, None if they were not read."""

    key: str
    digest: str
    parts: tuple[Block, ...]
    document: Document
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The outcome for an item: a thread with the passages that it is found by, the first of which says what was seen,
    and, of an item that may become a draft, its facts."""

    thread: Thread
    passages: tuple[str, ...]
    facts: Facts | None = None


def key_of(item: Raw | Discussion) -> str:
    return item.key if isinstance(item, Discussion) else item.key or item.url or item.origin


def digest_of(item: Raw | Discussion) -> str:
    """Changes with anything that a thread is made of."""
    if isinstance(item, Raw):
        texts = [item.format, item.content]
    else:
        texts = [item.title, str(item.resolved)]
        texts += [f"{message.role} {message.accepted} {message.text}" for message in item.messages]
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def facts_of(item: Raw | Discussion, told: Callable[[Discussion], tuple[Block, ...]] = write_up) -> Facts | None:
    """The facts of a write-up or of what is ``told`` by a discussion; None if nothing is left of it."""
    item = _with_short_lines(item)
    if isinstance(item, Raw):
        url, parts, digest = item.url or canonical(item), blocks(item), digest_of(item)
    else:
        parts = told(item)
        # A reply that adds nothing does not change the write-up.
        url, digest = item.url, hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    article = document(item.origin, url, parts)
    if not article.blocks:
        return None
    return Facts(key=key_of(item), digest=digest, parts=parts, document=without_persons(article))


def read_item(source: str, item: Raw | Discussion, *, drafted: bool = False) -> Reading | None:
    """None if nothing is left of the item. Persons and machines are named nowhere in the reading."""
    if isinstance(item, Discussion):
        facts = facts_of(item) if drafted else None
        told = discussion_without_persons(_with_short_messages(item))
        title, url, texts = told.title, told.url, [message.text for message in told.messages]
        whole = _start((title, *texts))
        if facts is None:
            evidence, problem_lines = parse(whole), 1 + title.count("\n") + 1 + texts[0].count("\n")
        else:  # read once, for the draft too
            told_lines = list(article_lines(facts.document.title, facts.document.blocks))
            evidence = parse("\n".join(told_lines))
            ends = (told_lines.index(line) for line in (f"## {REPLIES}", f"## {CAUSE}") if line in told_lines)
            problem_lines = next(ends, len(told_lines))
            facts = replace(facts, evidence=evidence)
        symptom, resolution, resolved_by = of_discussion(told, evidence, problem_lines)
    else:
        facts = facts_of(item)
        if facts is None:
            return None
        article = facts.document
        title, url, texts = article.title, article.url, [block.text for block in article.blocks]
        lines = "\n".join(article_lines(title, article.blocks))
        whole = lines[:LONGEST_TEXT]
        evidence = parse(lines if drafted else whole)
        symptom, resolution, resolved_by = of_document(article)
        facts = replace(facts, evidence=evidence) if drafted else None
    run = evidence.run
    versions = {name: fact.exact for name, fact in sorted(evidence.versions.items()) if fact.exact is not None}
    thread = Thread(
        source=source,
        key=key_of(item),
        url=url,
        title=title,
        language=language_of(whole),
        digest=digest_of(item),
        updated=item.updated,
        origin=item.origin,
        symptom=symptom,
        resolution=resolution,
        resolved_by=resolved_by,
        framework=run.framework.value if run.framework else "",
        algorithm=run.algorithm.value if run.algorithm else "",
        model_family=run.model_family.value if run.model_family else "",
        signals=tuple(sorted({signal.kind for signal in evidence.signals})),
        versions=MappingProxyType(versions),
    )
    return Reading(thread=thread, passages=tuple(_passages(title, texts)), facts=facts)


def _with_short_lines(item: Raw | Discussion) -> Raw | Discussion:
    """The item with the start of its huge lines; a page's markup may well be one line."""
    if isinstance(item, Discussion):
        return _with_short_messages(item)
    return item if item.format == "html" else replace(item, content=_short_lines(item.content))


def _with_short_messages(item: Discussion) -> Discussion:
    return replace(item, messages=tuple(replace(one, text=_short_lines(one.text)) for one in item.messages))


def _short_lines(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return "\n".join(line[:LONGEST_LINE] for line in text.split("\n"))


def _start(texts: Sequence[str]) -> str:
    """The first `LONGEST_TEXT` code points of the texts, one below the other; of a huge text no more is copied."""
    return "\n".join(text[:LONGEST_TEXT] for text in texts[:LONGEST_TEXT])[:LONGEST_TEXT]


def _passages(title: str, texts: Sequence[str]) -> Iterator[str]:
    """Stretches of the thread, each with its title: what is searched for."""
    pending = ""
    count = 0
    for text in texts:
        for start in range(0, max(1, len(text)), LONGEST_PASSAGE):
            piece = text[start : start + LONGEST_PASSAGE]
            if pending and len(pending) + len(piece) > LONGEST_PASSAGE:
                yield f"{title}\n{pending}"
                count, pending = count + 1, ""
                if count == MOST_PASSAGES:
                    return
            pending = f"{pending}\n{piece}" if pending else piece
    yield f"{title}\n{pending}"
