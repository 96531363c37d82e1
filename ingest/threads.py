"""Write-ups and discussions to threads: without persons, summarised, cut into passages. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from trainmedic.ingest.clean import clean
from trainmedic.ingest.document import Discussion, Document, Message, Raw
from trainmedic.ingest.personal import discussion_without_persons, without_persons
from trainmedic.ingest.summary import of_discussion, of_document
from trainmedic.kb.language import language_of
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.threads.thread import Thread

LONGEST_PASSAGE = 1_200
MOST_PASSAGES = 12
LONGEST_LINE = MOST_PASSAGES * LONGEST_PASSAGE
"""Code points of a line that are read: no more of it could become passages."""
LONGEST_TEXT = 12_000
"""Code points of one thread that are read for facts."""
Reading = tuple[Thread, tuple[str, ...]]
"""A thread and its passages."""


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


def thread_of(source: str, item: Raw | Discussion) -> Reading | None:
    """The thread and its passages, the first of which says what was seen; None if nothing is left of the item. Persons
    and machines are named nowhere in it."""
    digest = digest_of(item)
    item = _with_short_lines(item)
    if isinstance(item, Discussion):
        item = discussion_without_persons(item)
        url, title, texts = item.url, item.title, _texts(item.messages)
        evidence = parse(whole := _start((title, *texts)))
        symptom, resolution, resolved_by = of_discussion(item, evidence)
    else:
        document = next(iter(clean([item])), None)
        if document is None:
            return None
        document = without_persons(document)
        url, title, texts = document.url, document.title, _paragraphs(document)
        evidence = parse(whole := _start((title, *texts)))
        symptom, resolution, resolved_by = of_document(document)
    run = evidence.run
    thread = Thread(
        source=source,
        key=key_of(item),
        url=url,
        title=title,
        language=language_of(whole),
        digest=digest,
        updated=item.updated,
        origin=item.origin,
        symptom=symptom,
        resolution=resolution,
        resolved_by=resolved_by,
        framework=run.framework.value if run.framework else "",
        algorithm=run.algorithm.value if run.algorithm else "",
        model_family=run.model_family.value if run.model_family else "",
        signals=tuple(sorted({signal.kind for signal in evidence.signals})),
        versions=MappingProxyType(
            {name: fact.exact for name, fact in sorted(evidence.versions.items()) if fact.exact is not None}
        ),
    )
    return thread, tuple(_passages(title, texts))


def _with_short_lines(item: Raw | Discussion) -> Raw | Discussion:
    """The item with the start of its huge lines; a page's markup may well be one line."""
    if isinstance(item, Discussion):
        return replace(item, messages=tuple(replace(one, text=_short_lines(one.text)) for one in item.messages))
    return item if item.format == "html" else replace(item, content=_short_lines(item.content))


def _short_lines(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return "\n".join(line[:LONGEST_LINE] for line in text.split("\n"))


def _start(texts: Sequence[str]) -> str:
    """The first `LONGEST_TEXT` code points of the texts, one below the other; of a huge text no more is copied."""
    return "\n".join(text[:LONGEST_TEXT] for text in texts[:LONGEST_TEXT])[:LONGEST_TEXT]


def _texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def _paragraphs(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


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
