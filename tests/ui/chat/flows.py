"""Screenshots of eight flows for the documentation, made from a service of their own.

    python -m tests.ui.chat.flows [FOLDER]

Needs Chromium and playwright. FOLDER is `docs/images` by default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.service.test_spine import FAULTY
from tests.service.test_worst_answers import FULL_FP16, grows_and_breaks
from tests.ui.chat.browser.conftest import ARGUMENTS, CHROMIUM, PATIENCE_MS, PROFILE, Tab
from tests.ui.chat.conftest import ROOT, serving
from trainmedic.ui.loading import prebuild

COLOURS = 160
"""Colours of a picture: enough for text and flat areas, at a quarter of the size."""


def example(tab: Tab, name: str, path: str = "/") -> None:
    tab.open(path)
    tab.page.click(f'[data-tm-example="{name}"]')
    tab.answered()


def asked(tab: Tab, path: str, question: str, *files: tuple[str, str]) -> None:
    tab.open(path)
    if files:
        tab.attach(*files)
    tab.ask(question)
    tab.answered()


def differential(tab: Tab) -> None:
    asked(tab, "/", "loss became nan, why?", ("sft.yaml", FULL_FP16), ("train.log", grows_and_breaks()))
    tab.page.click('.tm-nav a[href="#tm-causes"]')
    tab.page.locator(".tm-node").first.scroll_into_view_if_needed()


def plots(tab: Tab) -> None:
    asked(tab, "/", "loss became nan, why?", ("sft.yaml", FULL_FP16), ("train.log", grows_and_breaks()))
    tab.page.click('.tm-nav a[href="#tm-metrics"]')
    tab.page.wait_for_timeout(500)
    box = tab.page.locator("#tm-metrics svg").first.bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] * 0.85, box["y"] + box["height"] / 2)


def linked(tab: Tab) -> None:
    example(tab, "fp16", "/zh/")
    answer_id = tab.page.get_attribute(".tm-after", "data-answer")
    tab.page.goto(f"{tab.url}/zh/?answer={answer_id}")
    tab.page.wait_for_selector("#tm-first .tm-ev")


FLOWS: Mapping[str, tuple[Callable[[Tab], None], int, Mapping[str, Any]]] = {
    "answer": (partial(example, name="kto"), 1440, {}),
    "config": (lambda tab: asked(tab, "/zh/", "", ("sft.yaml", FAULTY)), 1440, {}),
    "asks": (lambda tab: asked(tab, "/", "loss is nan after a few hundred steps, SFT"), 1440, {}),
    "checkup": (partial(example, name="dpo"), 1440, {}),
    "differential": (differential, 1440, {}),
    "plots": (plots, 1440, {}),
    "phone": (partial(example, name="kto", path="/zh/"), 390, {}),
    "link": (linked, 1440, {"color_scheme": "dark"}),
    "defects": (lambda tab: tab.open("/knowledge/?kind=defects&package=trl"), 1440, {}),
}


def main(folder: Path) -> None:
    prebuild()
    with TemporaryDirectory() as data, serving(Path(data)) as (url,), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        for name, (flow, width, options) in FLOWS.items():
            context = browser.new_context(**{**PROFILE, **options})
            context.set_default_timeout(PATIENCE_MS)
            tab = Tab(page=context.new_page(), url=url)
            tab.page.set_viewport_size({"width": width, "height": 844 if width < 900 else 900})
            flow(tab)
            tab.page.wait_for_timeout(400)
            picture = Image.open(BytesIO(tab.page.screenshot())).convert("RGB")
            picture.quantize(COLOURS, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)
            context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
