"""An answer as Slack messages: Slack's limits hold for any answer, and nothing is lost."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.slack.bots import COMMAND
from tests.slack.fake.blocks import check_blocks
from trainmedic.kb.model.report_view import MaskedView
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, Citation, Language, Section, Verdict
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.present.slack import ELEMENT, MESSAGE, Extras, lead, render_answer, weight
from trainmedic.ui.present.slack_text import escape, inert, link, split_markdown, wrapped

TEXTS = st.text(alphabet="ab \n`~#<>&*|[]()!@$é中\u2028", max_size=400)
BLOCKS = st.lists(st.one_of(TEXTS, TEXTS.map(lambda text: f"```py\n{text.replace('`', '')}\n```")), max_size=12).map(
    "\n\n".join
)


@pytest.fixture(scope="module")
def answer(knowledge_advisor: Advisor) -> Answer:
    """A whole answer with causes, findings, a patch and citations."""
    return knowledge_advisor.ask(Ask(question=f"my KTO loss is NaN from the first step, why?\n```\n{COMMAND}\n```"))


def with_text(answer: Answer, text: str, **more: Any) -> Answer:
    return replace(answer, answer=text, sections=(Section(kind="model_text", body=text),), **more)


def with_masked(answer: Answer, kind: str) -> Answer:
    return replace(answer, receipt=replace(answer.receipt, masked=(MaskedView(kind=kind, count=1),)))


def letters(text: str) -> str:
    """What a reader gets: no white space, no fences."""
    return re.sub(r"[\s`~]|\u200b", "", text)


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
@given(text=BLOCKS, limit=st.integers(40, 300))
def test_split_text_is_complete_in_order_and_within_the_limit(text: str, limit: int) -> None:
    pieces = split_markdown(text, limit)
    assert all(len(piece) <= limit for piece in pieces)
    without = [re.sub(r"^```(py)?$", "", piece, flags=re.MULTILINE) for piece in (*pieces, text)]
    assert letters("".join(without[:-1])) == letters(without[-1])


def test_a_cut_code_block_is_closed_and_opened_again() -> None:
    code = "\n".join(f"line {number}" for number in range(40))
    pieces = split_markdown(f"before\n\n```diff\n{code}\n```\n\nafter", 100)
    assert len(pieces) > 3
    for piece in pieces:
        assert piece.count("```") % 2 == 0
    inside = [line for piece in pieces for line in piece.split("\n") if line.startswith("line ")]
    assert "\n".join(inside) == code


@given(text=TEXTS)
def test_nobody_can_be_mentioned(text: str) -> None:
    assert not re.search(r"<[!@#]", inert(text))
    assert inert(text).replace("\u200b", "") == text.replace("\u200b", "")
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", escape(text))


@given(line=TEXTS.map(escape), limit=st.integers(8, 60))
def test_wrapping_cuts_no_escape_in_two(line: str, limit: int) -> None:
    parts = wrapped(line, limit)
    assert "".join(parts) == line
    assert all(len(part) <= limit for part in parts)
    assert all(not re.search(r"&(?!amp;|lt;|gt;)", part) for part in parts)


def test_only_addresses_of_the_web_become_links() -> None:
    assert link("https://a.example/?q=1&r=<2>|3", "a|<b>") == ("<https://a.example/?q=1&amp;r=%3C2%3E%7C3|a¦&lt;b&gt;>")
    assert link("javascript:alert(1)", "click") == "click"
    assert link("https://a.example/" + "x" * 2000, "long") == "long"


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_what_leads_comes_first_and_the_details_follow_in_the_thread_or_are_a_link_away(answer: Answer) -> None:
    folded = next(section for section in answer.sections if section.folded)
    (first, *details), [linked] = render_answer(answer), render_answer(answer, Extras(public_url="https://tm.example"))
    texts = [json.dumps(reply.blocks, ensure_ascii=False) for reply in (first, *details, linked)]
    assert [f"### {folded.heading}" in text for text in texts] == [False, *(True for _ in details), False]
    assert len(details) == 1
    assert "Mark resolved" in texts[0]
    assert "Mark resolved" not in texts[1]
    assert all(any(f'"[{item.marker}] ' in text for text in texts[:2]) for item in answer.citations)


def test_a_usual_answer_is_one_message(answer: Answer) -> None:
    [reply] = render_answer(answer, Extras(public_url="https://tm.example"))
    check_blocks(list(reply.blocks))
    shown = json.dumps(reply.blocks, ensure_ascii=False)
    for part in (
        *("Cause found", "confidence: high", "In your input", "Fix", "```diff", "Read:", "Helped"),
        *("https://tm.example/?answer=" + answer.id, "https://tm.example/knowledge/?case=", "Mark resolved"),
        "(openrlhf-kto-vanilla-loss",
    ):
        assert part in shown
    assert reply.text.startswith("🔎 Cause found")
    assert reply.blocks[0]["text"].lower().count("confidence:") == 1
    assert "> Read" not in shown  # the receipt stands in the small print, not above the verdict


@given(text=BLOCKS, many=st.integers(0, 60), title=TEXTS)
def test_any_answer_keeps_slacks_limits(answer: Answer, text: str, many: int, title: str) -> None:
    cited = tuple(
        Citation(marker=n, kind="case", id=f"case-{n}", title=title * 3, url="https://a.example/") for n in range(many)
    )
    notices = tuple(title for _ in range(many))
    long = with_text(answer, f"{text}\n\n" * 40, citations=cited, notices=notices)
    replies = render_answer(long, Extras(public_url="https://tm.example", not_read=notices))
    for reply in replies:
        check_blocks(list(reply.blocks))
        assert reply.blocks
        assert sum(map(weight, reply.blocks)) <= MESSAGE
    assert replies[-1].blocks[-1]["type"] == "actions"


def test_a_long_line_of_small_print_is_continued(answer: Answer) -> None:
    reply, *_ = render_answer(replace(answer, notices=("n" * (ELEMENT + 5),)))
    texts = [e["text"] for block in reply.blocks if block["type"] == "context" for e in block["elements"]]
    assert "n" * ELEMENT in texts
    assert "nnnnn" in texts


def test_secrets_are_said_but_not_mail_addresses(answer: Answer) -> None:
    without, *_ = render_answer(with_masked(answer, "email"))
    assert "still contains a secret" not in json.dumps(without.blocks)
    reply, *_ = render_answer(with_masked(answer, "huggingface_token"))
    assert "still contains a secret" in json.dumps(reply.blocks)


@every_case("verdict", ["answered", "need_input", "not_in_kb", "no_fault", "explained"])
@every_case("language", ["en", "zh"])
def test_every_verdict_has_words_in_both_languages(answer: Answer, verdict: Verdict, language: Language) -> None:
    changed = replace(answer, verdict=verdict, language=language, causes=())
    reply, *_ = render_answer(changed)
    first = reply.blocks[0]["text"].split("\n")[0]
    assert bool(re.search(r"[\u4e00-\u9fff]", first)) == (language == "zh")
    assert lead(changed).startswith(first)
