"""The answer on one page, whatever it has to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmedic.ui.present.page import MOST_BYTES, Page, PageCause, as_json, fitted, text

CAUSE = PageCause(
    id="some-cause",
    title="标题 title",
    cause="原因" * 300,
    fix="修复\n" * 200,
    confidence="high",
    evidence=("a.sh:1: x" * 15,) * 6,
)
FULL = Page(
    verdict="answered",
    language="en",
    causes=(CAUSE,) * 3,
    patch="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b",
    avoid=("不要 " * 100,) * 5,
    messages=("says " * 100,) * 2,
    findings=("finding " * 20,) * 5,
    defects=("defect " * 20,) * 5,
    missing=("send it " * 20,) * 5,
    notices=("note " * 20,) * 3,
    read=tuple(f"checkpoint-{n}/file.json" for n in range(40)),
    not_found=("a log " * 10,) * 4,
)


@pytest.mark.parametrize(
    "page", [FULL, replace(FULL, patch="+long line\n" * 1000), replace(FULL, verdict="need_input")]
)
def test_what_does_not_fit_is_left_out_and_the_first_cause_never(page: Page) -> None:
    short = fitted(page)
    assert short.shortened
    assert short.causes[0].title == CAUSE.title
    assert short.causes[0].evidence[0] == CAUSE.evidence[0]
    assert short.patch in ("", page.patch)  # whole or not at all
    assert max(len(text(short).encode()), len(as_json(short).encode())) <= MOST_BYTES


def test_a_page_that_fits_stays_as_it_is() -> None:
    page = replace(FULL, causes=(replace(CAUSE, cause="c", fix="f"),), avoid=(), messages=(), read=("a",), defects=())
    assert fitted(page) == page


def test_without_a_cause_what_the_messages_say_comes_first() -> None:
    shown = text(replace(FULL, verdict="need_input"))
    assert shown.index("What the messages say") < shown.index(CAUSE.title) < shown.index("What does not help")
