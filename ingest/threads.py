"""Write-ups and discussions to threads: masked, summarised, cut into passages, embedded, stored; only what changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from trainmedic.ingest.bulk import Bulk, Embed, Explain, Reading
from trainmedic.ingest.clean import clean
from trainmedic.ingest.document import Checkpoint, Discussion, Document, Failure, Gone, Item, Message, Raw, masked
from trainmedic.ingest.personal import discussion_without_persons, without_persons
from trainmedic.ingest.summary import of_discussion, of_document
from trainmedic.kb.language import language_of
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.threads.store import ThreadStore
from trainmedic.kb.threads.thread import Thread

LONGEST_PASSAGE = 1_200
MOST_PASSAGES = 12
LONGEST_LINE = MOST_PASSAGES * LONGEST_PASSAGE
"""Code points of a line that are read: no more of it could become passages."""
LONGEST_TEXT = 12_000
"""Code points of one thread that are read for facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSummary:
    """What one run did with the threads of a source."""

    added: int
    changed: int
    unchanged: int
    removed: int
    failures: tuple[Failure, ...]


def sync(
    source: str,
    items: Iterable[Item],
    store: ThreadStore,
    embed: Embed,
    explain: Explain,
    progress: Callable[[int], None] = lambda count: None,
    *,
    complete: bool = True,
) -> SyncSummary:
    """Bring the store's threads of ``source`` in line with what was read.

    ``complete``: the items are all that there is, so a thread that is not among them is gone. ``progress`` is called
    with the number of items that are done. An item that cannot be read never ends the run, and what came of it before
    stays.
    """
    known = store.digests(source)
    failures: list[Failure] = []
    keys: set[str] = set()
    counts = {"added": 0, "changed": 0, "unchanged": 0}

    deleted: set[str] = set()
    with Bulk(store, embed, explain) as bulk:
        for number, item in enumerate(items, start=1):
            progress(number)
            if isinstance(item, Failure):
                failures.append(item)
            elif isinstance(item, Gone):
                deleted.add(item.key)
            elif isinstance(item, Checkpoint):
                bulk.flush()
                store.set_checkpoint(source, item.value)
            else:
                item = masked(item)
                key, digest = key_of(item), digest_of(item)
                if key in keys:
                    continue
                keys.add(key)
                if known.get(key) == digest:
                    counts["unchanged"] += 1
                elif (reading := thread_of(source, item)) is None:
                    failures.append(Failure(origin=item.origin, reason="nothing but boilerplate"))
                else:
                    counts["changed" if key in known else "added"] += 1
                    bulk.add(reading)
        bulk.flush()
    if complete:
        deleted |= _missing(source, known.keys() - keys, failures, store)
    gone = sorted(deleted & known.keys())
    store.remove([f"{source}:{key}" for key in gone])
    store.optimise()
    return SyncSummary(**counts, removed=len(gone), failures=tuple(failures))


def _missing(source: str, keys: Set[str], failures: Sequence[Failure], store: ThreadStore) -> set[str]:
    """Of the keys that were not among the items, those that are not so because something could not be read."""
    unread = tuple(failure.origin for failure in failures)
    below = tuple(f"{origin}{mark}" for origin in unread for mark in "/#:")
    origins = store.origins(source) if keys and unread else {}
    return {key for key in keys if not (origin := origins.get(key, "")).startswith(below) and origin not in unread}


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
