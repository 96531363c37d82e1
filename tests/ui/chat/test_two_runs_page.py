"""Two runs on the question page: dropped as folders, compared in the chat and in the evidence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.test_run_diff import BAD, GOOD, log
from tests.ui.chat.conftest import Tab

Open = Callable[..., Tab]


@pytest.mark.parametrize(("path", "width"), [("/", 1440), ("/zh/", 390)])
def test_two_runs_are_compared_in_the_chat_and_in_the_evidence(path: str, width: int, tab: Open) -> None:
    page = tab(width=width, height=900)
    page.open(path)
    page.attach(("good.yaml", GOOD), ("bad.yaml", BAD), ("good.log", log()), ("bad.log", log(broken=16)))
    page.ask("为什么第二个发散?" if path == "/zh/" else "Why does the second one diverge?")
    page.answered()
    heading = page.page.locator("#bot .prose h3").first
    assert heading.inner_text() in ("What differs from the run that works", "与正常训练相比的差异")
    if width < 900:
        page.page.click('[data-tm-tab="evidence"]')
    assert page.page.locator("#tm-compare .tm-compared li", has_text="learning_rate").first.is_visible()
    plot = page.page.locator("#tm-compare .tm-plot").first
    assert plot.locator("g.good, g.bad").count() >= 2
    plot.locator(".tm-plot-box").hover(position={"x": 60, "y": 20})
    assert len(plot.locator(".tm-now > span").all_inner_texts()) == 2
    assert page.violations() == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width


DROP = """() => {
  const file = (name, text) => ({ isDirectory: false, name, file: (done) => done(new File([text], name)) });
  const folder = (name, entries) => ({ isDirectory: true, name, createReader: () => {
    let read = false;
    return { readEntries: (done) => { const rest = read ? [] : entries; read = true; done(rest); } };
  } });
  const entries = ["good", "bad"].map((name) => folder(name, [file("train.yaml", "lr: 1"), file(".DS_Store", "")]));
  const event = new Event("drop", { bubbles: true, cancelable: true });
  const items = entries.map((entry) => ({ webkitGetAsEntry: () => entry }));
  Object.defineProperty(event, "dataTransfer", { value: { types: ["Files"], files: [], items } });
  document.body.dispatchEvent(event);
}"""
"""Two folders, as a browser gives them to a page that they are dropped on."""


def test_two_dropped_folders_are_two_runs(tab: Open) -> None:
    page = tab()
    page.open()
    page.page.evaluate(DROP)
    page.page.locator(".tm-chip").nth(1).wait_for()
    assert page.page.locator(".tm-chip b").all_inner_texts() == ["good-train.yaml", "bad-train.yaml"]
