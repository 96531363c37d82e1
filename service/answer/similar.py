"""Similar reports in an answer: quoted, with who said it and where; never a diagnosis of ours. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.projection import project
from trainmedic.kb.threads.thread import SimilarThread
from trainmedic.service.answer.citations import harmless
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Section, SimilarView

MOST_QUOTED = 2
"""Passages of a resolution in the answer's text; the others are only in its fields."""


def similar_section(threads: Sequence[SimilarThread], language: str) -> tuple[Section, ...]:
    """The similar reports as the last section of an answer."""
    items = tuple(_item(similar_view(item), language) for item in threads)
    heading, body = messages("headings.similar", language), "\n".join(f"- {item}" for item in items)
    return (Section(kind="similar", heading=heading, body=body, items=items, folded=True),) if items else ()


def similar_view(item: SimilarThread) -> SimilarView:
    thread = item.thread
    url = thread.url if thread.url.startswith(("https://", "http://")) else None
    return project(SimilarView, thread, url=url, likeness=round(item.likeness, 4))


def _item(view: SimilarView, language: str) -> str:
    title = harmless(view.title)
    name = f"[{title}]({view.url})" if view.url is not None and "(" not in view.url else title
    if not view.resolution or view.resolved_by is None:
        return messages("similar.open", language, title=name)
    who = messages(f"similar.role.{view.resolved_by}", language)
    said = " … ".join(harmless(quote.text) for quote in view.resolution[:MOST_QUOTED])
    return messages("similar.resolved", language, title=name, who=who, said=said)
