"""The knowledge pages: what a search finds, what a release suffers from, and that addresses say all."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from types import MappingProxyType

import pytest
from starlette.responses import Response

from trainmedic.kb.audit.defect import Effect
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.settings import Settings
from trainmedic.ui.chat.knowledge.catalogue import (
    Catalogue,
    Entry,
    Selection,
    fits,
    grouped,
    marked,
    releases,
    snippet,
    terms_of,
)
from trainmedic.ui.chat.knowledge.pages import ON_PAGE, KnowledgePages
from trainmedic.ui.chat.texts import words
from trainmedic.ui.context import AppContext

HOSTILE = "<script>alert(1)</script> ![x](https://evil.example/y.png) [a](javascript:alert(1))"


def entry(identifier: str, **changes: object) -> Entry:
    plain = Entry(
        kind="defects",
        id=identifier,
        title=Text(en="a title", zh="标题"),
        group="silent",
        packages=("trl",),
        lines=MappingProxyType({"en": ("the loss is zero", "grad_norm is nan"), "zh": ("损失为零",)}),
        text="a title",
        badge="silent",
        affected=MappingProxyType({"trl": ">=0.18.0,<0.19.1"}),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def pages(advisor: Advisor) -> KnowledgePages:
    context = AppContext(settings=Settings(), advisor=advisor, answerer=TemplateAnswerer(advisor), executor=run_inline)
    return KnowledgePages(context, lambda name: f"/ui/{name}")


def html(response: Response) -> str:
    return bytes(response.body).decode()


def titles(page: str) -> list[str]:
    links = re.findall(r'<li><div><a href="[^"]*">(.*?)</a>', page)
    return [unescape(re.sub(r"<[^>]+>", "", link)) for link in links]


@pytest.fixture(scope="module")
def site(knowledge_advisor: Advisor) -> KnowledgePages:
    return pages(knowledge_advisor)


@pytest.mark.parametrize(
    ("version", "affected"),
    [("0.18.0", True), ("0.19", True), ("v0.19.0", True), ("0.19.1", False), ("0.20", False), ("0.17", False)],
)
def test_a_release_or_the_beginning_of_some_selects_the_defects_it_has(version: str, affected: bool) -> None:
    assert fits(entry("a"), Selection(package="trl", version=version)) is affected


def test_a_version_that_is_none_filters_nothing() -> None:
    assert releases("latest") is None
    assert fits(entry("a"), Selection(version="latest"))


def test_the_most_harmful_effects_come_first_and_certain_ones_before_possible_ones() -> None:
    entries = [
        entry("a", group="slow"),
        entry("b", group="silent", is_bounded=False),
        entry("c", group="silent"),
        entry("d", group="hang"),
    ]
    names = [(group, [each.id for each in listed]) for group, listed in grouped(entries, str)]
    assert names == [("silent", ["c", "b"]), ("hang", ["d"]), ("slow", ["a"])]
    assert [Effect(group).rank for group, _ in names] == sorted(Effect(group).rank for group, _ in names)


def test_chinese_is_searched_by_pairs_of_characters_and_names_by_words() -> None:
    assert terms_of("GRPO显存不足 zero_stage") == ("grpo", "显存", "存不", "不足", "zero_stage")


def test_a_snippet_is_the_line_with_the_words_in_the_language_of_the_reader_if_it_has_them() -> None:
    pieces = snippet(entry("a"), ("grad_norm",), "zh")
    assert [(piece.text, piece.mark) for piece in pieces] == [("grad_norm", True), (" is nan", False)]
    assert snippet(entry("a"), ("损失",), "en")[0].mark
    long = entry("a", lines={"en": ("word " * 200 + "needle " + "word " * 200,)})
    cut = "".join(piece.text for piece in snippet(long, ("needle",), "en"))
    assert "needle" in cut
    assert len(cut) < 200
    assert cut.startswith("…")
    assert cut.endswith("…")


def test_a_short_word_is_marked_where_it_stands_alone() -> None:
    assert [piece.text for piece in marked("this is precision", ("is",)) if piece.mark] == ["is"]


def test_marking_keeps_every_character() -> None:
    for text in ("loss is NaN, loss", "İstanbul loss", "损失 loss 损失", ""):
        assert "".join(piece.text for piece in marked(text, ("loss", "损失", "os"))) == text


def test_an_identifier_finds_the_pages_that_name_it_and_nothing_else(
    site: KnowledgePages, knowledge_advisor: Advisor
) -> None:
    page = html(site.response("/knowledge/", "q=vanilla_loss"))
    before, _, near = page.partition(words("en")["kb_near"])
    assert titles(before)[0] == "OpenRLHF KTO loss is NaN with --vanilla_loss"
    naming = [each for each in Catalogue(knowledge_advisor.knowledge).entries if "vanilla_loss" in each.text]
    assert len(titles(before)) == len(naming)
    assert "<mark>vanilla_loss</mark>" in before
    assert len(titles(near)) <= 8


def test_what_is_wrong_with_a_release_is_one_address(site: KnowledgePages) -> None:
    page = html(site.response("/knowledge/", "kind=defects&package=trl&version=0.19"))
    assert "<title>TRL 0.19 · Known defects · trainmedic</title>" in page
    headings = re.findall(r"<h3>([^<]+) <span", page)
    assert headings[0] == words("en")["effect_silent"]
    newer = html(site.response("/knowledge/", "kind=defects&package=trl&version=0.0.1"))
    assert len(titles(newer)) < len(titles(page))


def test_the_overview_counts_what_each_of_its_links_shows(site: KnowledgePages, knowledge_advisor: Advisor) -> None:
    page = html(site.response("/knowledge/", ""))
    link = re.search(r'<a href="(/knowledge/\?[^"]*class=oom[^"]*)">[^<]*<span>(\d+)</span>', page)
    assert link is not None
    path, _, query = unescape(link[1]).partition("?")
    assert int(link[2]) == len(titles(html(site.response(path, query))))
    catalogue = Catalogue(knowledge_advisor.knowledge)
    assert f"{catalogue.counts()['defects']:,}" in page


def test_a_long_list_goes_on_and_no_entry_is_lost_or_twice(site: KnowledgePages, knowledge_advisor: Advisor) -> None:
    seen: list[str] = []
    query = "kind=rules"
    while query:
        page = html(site.response("/knowledge/", query))
        seen += re.findall(r'href="/knowledge/\?rule=([^"]+)"', page)
        following = re.search(r'href="/knowledge/\?([^"]+)" rel="next"', page)
        query = unescape(following[1]) if following else ""
    assert len(seen) > ON_PAGE
    assert sorted(seen) == sorted(rule.id for rule in knowledge_advisor.knowledge.rules.rules)


def test_empty_fields_of_the_form_leave_the_address(site: KnowledgePages) -> None:
    response = site.response("/zh/knowledge/", "kind=cases&q=&package=trl&version=&class=")
    assert response.status_code == 303
    assert response.headers["location"] == "/zh/knowledge/?kind=cases&package=trl"
    assert site.response("/knowledge/", "q=").headers["location"] == "/knowledge/"


def test_messages_are_found_by_package_words_and_release(site: KnowledgePages) -> None:
    page = html(site.response("/knowledge/", "kind=messages&package=trl&q=global+batch+size"))
    printed = re.findall(r'tm-kb-printed"><code>(.*?)</code>', page, re.DOTALL)
    assert printed
    assert all("batch" in re.sub(r"<[^>]+>", "", line).casefold() for line in printed)
    assert "grpo_trainer.py:" in page
    assert "transformers" in html(site.response("/knowledge/", "kind=messages"))


def test_a_page_of_each_kind_has_its_title_description_and_sources(
    site: KnowledgePages, knowledge_advisor: Advisor
) -> None:
    knowledge = knowledge_advisor.knowledge
    defect = next(each for each in knowledge.defects.all if each.workaround is not None and each.fixed)
    ids = {
        "case": next(iter(knowledge.case_pages)),
        "rule": knowledge.rules.rules[0].id,
        "mechanism": knowledge.mechanisms.mechanisms[0].id,
        "defect": defect.id,
    }
    for kind, identifier in ids.items():
        for path in ("/knowledge/", "/zh/knowledge/"):
            page = html(site.response(path, f"{kind}={identifier}"))
            title = re.search(r"<h2>(.*?)</h2>", page)
            assert title is not None
            assert f"<title>{title[1]} · trainmedic</title>" in page
            assert 'property="og:description"' in page
            assert 'rel="noopener noreferrer"' in page
    shown = html(site.response("/knowledge/", f"defect={defect.id}"))
    assert f"<code>{defect.package}&gt;={defect.fixed}</code>" in shown


def test_a_cause_of_any_level_opens_under_the_address_that_answers_use(
    site: KnowledgePages, knowledge_advisor: Advisor
) -> None:
    knowledge = knowledge_advisor.knowledge
    ids = [knowledge.mechanisms.mechanisms[0].id, knowledge.defects.all[0].id]
    assert [site.response("/knowledge/", f"case={identifier}").status_code for identifier in ids] == [200, 200]


@pytest.mark.parametrize("query", ["case=no-such", "rule=", "defect=%00", "mechanism=a.b.c"])
def test_a_page_that_is_not_there_is_a_404_that_leads_back(site: KnowledgePages, query: str) -> None:
    response = site.response("/knowledge/", query)
    assert response.status_code == 404
    assert words("en")["kb_missing"] in html(response)


@pytest.mark.parametrize(
    "query",
    [
        "page=99999",
        "page=x",
        "kind=nothing",
        "class=%3Cscript%3E",
        "version=%F0%9F%92%A5",
        "q=%3Cscript%3E",
        "a=1&" * 60,
    ],
)
def test_no_address_breaks_the_list(site: KnowledgePages, query: str) -> None:
    response = site.response("/knowledge/", query)
    assert response.status_code == 200
    assert "<script>" not in html(response)


def test_a_teams_page_runs_nothing_and_loads_nothing(advisor: Advisor) -> None:
    knowledge = advisor.knowledge
    case = next(iter(knowledge.case_pages.values()))
    hostile = replace(case, id="hostile", sections={"en": {"cause": HOSTILE, "symptom": "s", "fix": "f"}})
    site = pages(Advisor(replace(knowledge, cases=CaseSet(cases=(hostile,), version="x")), parse))
    page = html(site.response("/knowledge/", "case=hostile"))
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
