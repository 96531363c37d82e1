"""The document of the question page: title and link preview of what it shows, and a first view to be used at once: the
empty question, or the linked answer.

The framework's own document carries its name and picture, and shows nothing before a megabyte of scripts has loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup

from trainmedic.service.answer.schema import Answer
from trainmedic.ui.chat import markdown
from trainmedic.ui.chat.evidence import first_sentences, panel, render, spoken, steps
from trainmedic.ui.chat.frame import header
from trainmedic.ui.chat.markdown import message_html
from trainmedic.ui.chat.session import (
    StoredConversation,
    chat_message,
    offered,
    says_something,
    stored_conversation,
    under,
)
from trainmedic.ui.chat.sources import tail
from trainmedic.ui.chat.texts import Language, examples, words
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.verdict import shown_verdict

SCRIPT = '<script type="module" crossorigin src="./'
STYLE = '<link rel="stylesheet" crossorigin href="./'


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The words of a browser's tab and of a link to the page."""

    title: str
    description: str


@cache
def framework_files() -> tuple[str, str]:
    """The addresses of the framework's script and style, below the page's own, as its document names them."""
    spec = find_spec("gradio")
    assert spec is not None
    assert spec.origin is not None
    html = (Path(spec.origin).parent / "templates" / "frontend" / "index.html").read_text(encoding="utf-8")
    script, style = (html.partition(mark)[2].partition('"')[0] for mark in (SCRIPT, STYLE))
    if not script or not style:
        raise RuntimeError("this version of Gradio names its files otherwise")
    return script, style


def document(
    context: AppContext, language: Language, query: Mapping[str, str], url: str, static: Mapping[str, str]
) -> str:
    """The question page's document. ``url`` is its whole address, ``static`` maps our files to theirs. Blocks."""
    script, style = framework_files()
    answer_id = query.get("answer", "")[:64]
    stored = stored_conversation(context, answer_id, language) if answer_id else None
    return render(
        "page.html",
        language,
        preview=preview(stored, language),
        url=url,
        static=static,
        script=script,
        style=style,
        header=Markup(header(context, language, "")),
        examples=examples(language),
        model=bool(context.settings.model.base_url),
        view="link" if answer_id else "question" if "q" in query else "start",
        messages=shown_messages(stored, language) if answer_id else (),
        parts=parts(context, stored, language) if stored is not None else None,
    )


def linked(context: AppContext, language: Language, answer_id: str, asked: Answer | None = None) -> str:
    """The part of the document that shows an answer of the history. Blocks."""
    stored = stored_conversation(context, answer_id, language)
    if stored is not None and asked is not None:
        stored = _with_patches(stored, asked, language)
    beside = parts(context, stored, language) if stored is not None else None
    return render("linked.html", language, messages=shown_messages(stored, language), parts=beside)


def _with_patches(stored: StoredConversation, asked: Answer, language: Language) -> StoredConversation:
    """With the patches as they were made for who asked: what is stored has no names, and its diffs would not apply."""
    made = {finding.rule_id: finding.patch for finding in asked.findings}
    sections = zip(stored.answer.sections, asked.sections, strict=True)
    answer = replace(
        stored.answer,
        sections=tuple(own if own.kind in ("diff", "aside") else kept for kept, own in sections),
        findings=tuple(replace(finding, patch=made[finding.rule_id]) for finding in stored.answer.findings),
    )
    told = chat_message("assistant", markdown.answer(answer, language))
    return replace(stored, answer=answer, messages=(*stored.messages[:-1], told))


def preview(stored: StoredConversation | None, language: Language) -> Preview:
    """The title and description of a linked answer, or of the page."""
    t = words(language)
    if stored is None:
        return Preview(title=t["page_title"], description=t["hello_text"])
    return Preview(title=answer_title(stored.answer, language), description=summary(stored.answer) or t["hello_text"])


def shown_messages(stored: StoredConversation | None, language: Language) -> list[tuple[str, Markup]]:
    """The messages of a linked conversation, each with its role; of one that is not stored a message that says so."""
    messages = stored.messages if stored is not None else (chat_message("assistant", words(language)["link_gone"]),)
    return [(message["role"], message_html(message["content"], words(language)["copy_button"])) for message in messages]


def parts(context: AppContext, stored: StoredConversation, language: Language) -> dict[str, Markup]:
    """The evidence of a linked answer and what is under it, as the framework's page has them."""
    answer, history = stored.answer, context.memory.history
    spoken_here = spoken(answer, language)
    texts, rules = {source.name: source.text for source in stored.sources}, context.advisor.knowledge.rules
    follow = offered(context, answer, stored.sources, language)
    vote = history.feedback(answer.id) if history is not None else None
    title = answer_title(answer, language)
    end = under(
        context, answer.id, answer.conversation_id, spoken_here, title, follow, vote, feedback=says_something(answer)
    )
    return {
        "panel": Markup(panel(answer, texts, language, rules)),
        "steps": Markup(steps(answer.steps, language)),
        "tail": Markup(tail(answer, texts, language, rules)),
        "after": Markup(end),
    }


def answer_title(answer: Answer, language: Language) -> str:
    """An answer in one line: its cause, or else its verdict."""
    verdict = words(spoken(answer, language))[f"verdict_{shown_verdict(answer)}"]
    name = answer.causes[0].title if answer.verdict in ("answered", "no_fault") and answer.causes else verdict
    return f"{name} · trainmedic"


def summary(answer: Answer) -> str:
    """The cause of an answer in short, or its findings; empty if it found nothing."""
    if answer.verdict in ("answered", "no_fault") and answer.causes:
        return first_sentences(answer.causes[0].cause)
    fired = [finding.message for finding in answer.findings if finding.status == "fired"]
    return first_sentences(fired[0]) if fired else ""
