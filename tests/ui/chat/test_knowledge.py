"""The knowledge pages: what a search finds, and that addresses say all."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from starlette.responses import Response

from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.settings import Settings
from trainmedic.ui.chat.texts import words
from trainmedic.ui.context import AppContext
from trainmedic.ui.knowledge.catalogue import Catalogue, Selection
from trainmedic.ui.knowledge.pages import ON_PAGE, KnowledgePages

HOSTILE = "<script>alert(1)</script> ![x](https://evil.example/y.png) [a](javascript:alert(1))"


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


def test_an_identifier_finds_the_pages_that_name_it_and_nothing_else(
    site: KnowledgePages, knowledge_advisor: Advisor
) -> None:
    page = html(site.response("/knowledge/", "q=vanilla_loss"))
    assert titles(page)[0] == "OpenRLHF KTO loss is NaN with --vanilla_loss"
    naming = [each for each in Catalogue(knowledge_advisor.knowledge).entries if "vanilla_loss" in each.text]
    assert len(titles(page)) == len(naming)
    assert titles(html(site.response("/zh/knowledge/", "q=显卡装不下"))), (
        "words that no page has find those near in meaning"
    )
    assert site.response("/zh/knowledge/", "kind=cases&q=&package=trl").headers["location"] == (
        "/zh/knowledge/?kind=cases&package=trl"
    )


def test_the_list_is_narrowed_by_kind_and_framework(site: KnowledgePages, knowledge_advisor: Advisor) -> None:
    page = html(site.response("/knowledge/", "kind=defects&package=trl"))
    assert "<title>TRL · Known defects · trainmedic</title>" in page
    catalogue = Catalogue(knowledge_advisor.knowledge)
    chosen = catalogue.selected(Selection(kind="defects", package="trl"))
    assert {(entry.kind, entry.packages) for entry in chosen} == {("defects", ("trl",))}
    assert f"{catalogue.counts['defects']:,}" in page


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
        "page=x",
        "package=%3Cscript%3E",
        "q=%F0%9F%92%A5",
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
