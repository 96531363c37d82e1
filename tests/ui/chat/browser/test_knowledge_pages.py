"""The pages of the knowledge in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from tests.ui.chat.browser.conftest import Tab, broken
from trainmedic.ui.chat.texts import words

Open = Callable[..., Tab]
EN = words("en")


def test_the_knowledge_is_searched_filtered_and_read(tab: Open) -> None:
    page = tab(color_scheme="dark")
    page.open("/knowledge/")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.page.evaluate(background) == "rgb(14, 18, 23)"
    page.page.fill("#tm-kb-query", "loss is nan")
    page.page.keyboard.press("Enter")
    page.page.wait_for_url("**q=**")
    found = page.page.locator(".tm-kb-rows li").count()
    page.page.select_option('select[name="package"]', "trl")
    page.page.wait_for_url("**package=trl**")
    assert 0 < page.page.locator(".tm-kb-rows li").count() < found
    page.page.locator(".tm-kb-kinds a", has_text=EN["kb_cases"]).click()
    page.page.wait_for_url("**kind=cases**")
    title = page.page.locator(".tm-kb-rows a").first.inner_text()
    page.page.locator(".tm-kb-rows a").first.click()
    page.page.wait_for_selector(".tm-article h2")
    assert page.page.locator(".tm-article h2").first.inner_text() == title
    page.page.click("[data-tm-theme]")
    page.page.go_back()
    assert page.page.input_value("#tm-kb-query") == "loss is nan"
    assert page.page.locator(".tm-kb-rows a").first.inner_text() == title
    page.open("/knowledge/")
    page.page.wait_for_function(f"{background} === 'rgb(246, 247, 249)'")


def test_pages_of_the_knowledge_break_no_rule_of_accessibility(tab: Open) -> None:
    page = tab()
    for path in (
        "/knowledge/?kind=defects&package=trl",
        "/zh/knowledge/?case=openrlhf-kto-vanilla-loss-nan",
        "/knowledge/?rule=openrlhf-kto-vanilla-loss-single-class",
    ):
        page.open(path)
        # The rows of the list are alike: the first of them stand for all.
        page.page.evaluate("document.querySelectorAll('.tm-kb-rows li:nth-child(n + 5)').forEach(row => row.remove())")
        assert broken(page, 1440, 400) == {}, path
