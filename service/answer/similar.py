"""Similar reports in an answer: quoted, with who said it and where; never a diagnosis of ours. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmedic.kb.projection import project
from trainmedic.kb.threads.thread import SimilarThread
from trainmedic.service.answer.citations import harmless
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer, Section, SimilarView, markdown

MOST_QUOTED = 2
"""Passages of a resolution in the answer's text; the others are only in its fields."""


def with_similar(answer: Answer, threads: Sequence[SimilarThread]) -> Answer:
    """The answer with the similar reports as its last section. A reply that diagnoses nothing keeps its text."""
    views = tuple(_view(item) for item in threads)
    if not views or not any(section.kind == "lead" for section in answer.sections):
        return replace(answer, similar=views)
    items = tuple(_item(view, answer.language) for view in views)
    section = Section(
        kind="similar",
        heading=messages("headings.similar", answer.language),
        body="\n".join(f"- {item}" for item in items),
        items=items,
        folded=True,
    )
    sections = (*answer.sections, section)
    return replace(answer, answer=markdown(sections), sections=sections, similar=views)


def _view(item: SimilarThread) -> SimilarView:
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
