"""The plots of a run in a real browser: one crosshair, a logarithmic scale, and the way to the line in the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.ui.chat.conftest import Tab

Open = Callable[..., Tab]
ROWS = [{"loss": round(2 - n / 40, 3), "grad_norm": 1.0 + n, "learning_rate": 1e-5, "step": 10 * n} for n in range(30)]
BROKEN = [{"loss": 0.0, "grad_norm": float("nan"), "learning_rate": 1e-5, "step": 10 * n} for n in range(30, 36)]
LOG = "\n".join(map(str, [*ROWS, *BROKEN]))


@pytest.mark.parametrize(("path", "width", "scheme"), [("/", 1440, "light"), ("/zh/", 390, "dark")])
def test_the_plots_of_a_run_share_a_crosshair_and_lead_to_the_log(
    path: str, width: int, scheme: str, tab: Open
) -> None:
    page = tab(width=width, height=800, color_scheme=scheme)
    page.open(path)
    page.attach(("train.log", LOG))
    page.ask("loss 变成 0" if path == "/zh/" else "the loss is 0")
    page.answered()
    if width < 900:
        page.page.click('[data-tm-tab="evidence"]')
    boxes = page.page.locator("#tm-metrics .tm-plot-box")
    box = boxes.first.bounding_box()
    assert box is not None
    boxes.first.scroll_into_view_if_needed()
    boxes.first.hover(position={"x": box["width"] / 2, "y": 20})
    crosses = page.page.locator("#tm-metrics .tm-cross:visible")
    assert crosses.count() == boxes.count() >= 3
    assert len({cross.evaluate("element => element.style.left") for cross in crosses.all()}) == 1
    assert "train.log:" in page.page.inner_text(".tm-where")
    assert [text for text in page.page.locator(".tm-now").all_inner_texts() if not text.strip()] == []
    slider = page.page.locator("[data-tm-scrub]")
    slider.focus()
    page.page.keyboard.press("End")
    assert "(NaN)" in page.page.locator(".tm-now").first.inner_text().replace("（", "(").replace("）", ")")
    assert "train.log:36" in str(slider.get_attribute("aria-valuetext"))
    page.page.keyboard.press("ArrowLeft")
    assert "train.log:35" in str(slider.get_attribute("aria-valuetext"))
    page.page.check("[data-tm-log]")
    assert page.page.locator(".tm-plot g.linear:visible").count() == 0
    assert page.page.locator(".tm-plot g.log:visible").count() >= 2
    assert page.violations() == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    page.page.locator(".tm-plot figcaption a").first.click()
    row = page.page.evaluate("[document.activeElement.dataset.line, document.activeElement.innerText]")
    assert row[0] == "31"
    assert "'loss': 0.0" in row[1]
