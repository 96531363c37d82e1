"""Answers and questions as Markdown: what is verbatim, what is taken out, what becomes a link."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.every_case import every_case
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, Section
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.chat import markdown
from trainmedic.ui.chat.evidence import ticked
from trainmedic.ui.chat.texts import examples

READER = MarkdownIt("gfm-like", {"html": True, "linkify": False})
"""A reader of Markdown that keeps raw HTML, so that whatever gets through can be seen."""
PIECES = st.sampled_from(
    ["`", "``", "```", "~~~", "\\", "\n", "\n\n", "  ", "    ", "- ", "> ", "1. ", "|", "---", "|-|-|", "<img src=//x>",
     "<script>", "![p](https://x/y)", "[l](javascript:x)", "[1]", "<https://x.y>", "&lt;", "a", "[r]: https://x", "\r",
     "\t", "[1](#tm-c1)", "#", "=", "<!--", "-->", "loss", "*", "_"]
)  # fmt: skip


def html_of(markdown: str) -> str:
    return str(READER.render(markdown))


def tags(html: str) -> set[str]:
    return set(re.findall(r"<([a-z0-9]+)", html))


def text_of(html: str) -> str:
    from html import unescape

    return unescape(re.sub(r"<[^>]*>", "", html))


def answer_of(advisor: Advisor, number: int = 0) -> Answer:
    example = examples("en")[number]
    return advisor.ask(Ask(question=example.question, attachments=example.files))


@every_case(
    "text",
    [
        "why is *loss* _nan_?",
        "# no heading",
        "- no item",
        "1. no item",
        "2) no item",
        "<b>x</b> & &amp; &#65;",
        "[a](https://x.example) ![b](//c) <https://d.example> https://e.example www.f.example g@h.example",
        "`code` ``more` $$x$$ ~~y~~ |a|b|",
        "===",
        "---",
        "a\n===\nb",
        "back\\slash \\` \\<b>",
        "${HOME} {{value}} `${x}`",
        "第一行\n第二行",
    ],
)
def test_a_question_is_shown_character_for_character(text: str) -> None:
    html = html_of(markdown.verbatim(text))
    assert tags(html) <= {"p", "br"}
    assert [line.strip() for line in text_of(html).strip().split("\n")] == [line.strip() for line in text.split("\n")]


def test_a_fenced_command_in_a_question_is_a_code_block_with_every_character_of_it() -> None:
    command = "deepspeed --module x \\\n  --a *b* `c` <img src=//x> $HOME\n\n# [d](//e)"
    shown = markdown.verbatim(f"Why *nan*?\n\n```bash\n{command}\n```\nIt ran *before*.")
    html = html_of(shown)
    assert tags(html) == {"p", "pre", "code"}
    before, block, after = re.split(r"</?pre>", html)
    assert text_of(block) == f"{command}\n"
    assert [text_of(before).strip(), text_of(after).strip()] == ["Why *nan*?", "It ran *before*."]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n~~~\nb", ["a", "b"]),  # nothing closes it
        ("```launch.sh with words\nb\n```", ["launch.sh with words", "b"]),
        ("```pip list``` says trl 0.9", ["```pip list``` says trl 0.9"]),  # one line, no block
        ("````\n```\nb\n````", ["```\nb"]),
        ("```\n\n```", [""]),
    ],
)
def test_fences_are_told_from_ticks_and_nothing_behind_them_is_lost(text: str, shown: list[str]) -> None:
    html = html_of(markdown.verbatim(text))
    assert [text_of(each).strip("\n") for each in re.findall(r"<(?:p|pre)>.*?</(?:p|pre)>", html, re.DOTALL)] == shown


@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_character_of_a_question_is_lost_but_its_fences(text: str) -> None:
    html = html_of(markdown.verbatim(text))
    assert tags(html) <= {"p", "br", "pre", "code"}
    ignored = re.compile(r"[\s`~]")
    assert ignored.sub("", text_of(html)) == ignored.sub("", text)


def test_a_question_names_its_files_with_their_lines() -> None:
    shown = markdown.question("why?", [("a`b.sh", 1), ("train.log", 1204)], "en")
    assert shown.split("\n\n") == ["why?", "``a`b.sh``\xa01\xa0line · `train.log`\xa01,204\xa0lines"]


def test_of_a_long_paste_and_many_files_the_beginning_is_shown() -> None:
    paste = "\n".join(f"line {number}" for number in range(30))
    shown = markdown.question(paste, [(f"{number}.yaml", 1) for number in range(40)], "en")
    assert "line 9\n" in shown
    assert "line 10" not in shown
    assert "… and 20 more lines" in shown
    assert shown.endswith("`9.yaml`\xa01\xa0line · and 30 more files")


@given(st.lists(PIECES, max_size=40).map("".join))
def test_whatever_a_model_writes_becomes_neither_html_nor_a_picture_nor_a_foreign_link(text: str) -> None:
    html = html_of(markdown.safe(text, frozenset({1})))
    assert not tags(html) & {"img", "script", "iframe", "form", "input", "button", "style", "table"}
    assert "<!--" not in html
    links = re.findall(r'href="([^"]*)"', html)
    assert all(link.startswith("#tm-") for link in links), links


def test_code_keeps_what_it_says_and_text_shows_what_it_says() -> None:
    shown = markdown.safe("Set `a<b>` to <b>1</b> & see https://x.example [link](https://y.example)", frozenset())
    html = html_of(shown)
    assert "<code>a&lt;b&gt;</code>" in html
    assert text_of(html).strip() == "Set a<b> to <b>1</b> & see https://x.example link"


def test_markers_lead_to_their_source_only_where_there_is_one() -> None:
    assert markdown.safe("a [1] b [7]", frozenset({1})) == "a [1](#tm-c1) b \\[7\\]"


def test_a_half_written_marker_waits_for_its_end(advisor: Advisor) -> None:
    found = replace(answer_of(advisor), causes=(), citations=())
    assert markdown.streamed(found, "The loss [1", "en").endswith("The loss ")
    assert markdown.streamed(found, "The loss [12]", "en").endswith("\\[12\\]")


def test_an_open_code_block_is_closed_while_it_streams(advisor: Advisor) -> None:
    found = replace(answer_of(advisor), causes=(), citations=())
    shown = markdown.streamed(found, "Run\n\n```bash\npip list", "en")
    assert shown.endswith("```bash\npip list\n```")


def test_the_patch_comes_before_the_link_that_unfolds_the_details(advisor: Advisor) -> None:
    found = answer_of(advisor)
    shown = markdown.answer(found, "en")
    assert shown.count("(#tm-fold)") == shown.count("```diff") == 1
    order = [
        shown.index(part) for part in ("### Fix", "```diff", "**Verify:**", "(#tm-fold)", "### Why", "### Ruled out")
    ]
    assert order == sorted(order)


def test_the_patch_of_what_is_only_noticed_is_not_in_the_chat_and_hides_no_example(advisor: Advisor) -> None:
    fix = Section(kind="fix", body="Do so:\n\n```diff\n-a: 1\n+a: 2\n```")
    aside = Section(kind="aside", body="Set `b`.\n\n```diff\n+b: 1\n```", folded=True)
    shown = markdown.answer(replace(answer_of(advisor), sections=(fix, aside)), "en")
    assert "+a: 2" in shown
    assert "+b: 1" not in shown


def test_an_answer_without_details_has_no_link_to_unfold_them(advisor: Advisor) -> None:
    found = replace(answer_of(advisor), sections=(Section(kind="lead", body="Nothing."),))
    assert "#tm-fold" not in markdown.answer(found, "en")


def test_no_marker_of_the_answer_is_lost_but_those_of_places_shown_beside(advisor: Advisor) -> None:
    found = answer_of(advisor)
    shown = set(re.findall(r"#tm-c(\d+)", markdown.answer(found, "en")))
    cited = {str(each.marker) for each in found.citations if each.kind == "case"}
    assert cited <= shown


def test_a_models_text_gets_the_causes_title_with_its_marker(advisor: Advisor) -> None:
    text = Section(kind="model_text", body="The loss is NaN [2].")
    found = replace(answer_of(advisor), mode="llm", answer=text.body, sections=(text,))
    _, second, third, *_ = markdown.answer(found, "en").split("\n\n")
    marker = next(item.marker for item in found.citations if item.id == found.causes[0].case_id)
    assert second == f"**{ticked(found.causes[0].title)}** [{marker}](#tm-c{marker})"
    assert third == "The loss is NaN [2](#tm-c2)."
    assert markdown.streamed(found, "The lo", "en").split("\n\n")[1:] == [
        f"**{ticked(found.causes[0].title)}**",
        "The lo",
    ]
