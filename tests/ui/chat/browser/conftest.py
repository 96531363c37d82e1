"""One browser for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.ui.chat.conftest import Served

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PROFILE: dict[str, Any] = {"locale": "en-US", "reduced_motion": "reduce"}
PATIENCE_MS = 40_000
MIN_CHECKS = 8
"""The checker has something to say about any page; fewer rules than this, and it did not run."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium, without a window. For this folder: while it is open, no other test can run an event loop."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield started
        started.close()


@cache
def axe_source() -> str:
    """The checker of the rules of WCAG that a program can check; the test is skipped where it is not installed."""
    package = pytest.importorskip("axe_playwright_python", reason="the accessibility tests need axe-core")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@dataclass(slots=True, kw_only=True)
class Tab:
    """A page of the browser, with everything that it asked for and every error in it."""

    page: Any
    url: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """Requests that left the service."""
        return [each for each in self.requests if not each.startswith((f"{self.url}/", "data:", "blob:"))]

    def open(self, path: str = "/") -> None:
        """Go to a page of the service and wait until it can be used."""
        self.page.goto(f"{self.url}{path}")
        self.loaded()

    def loaded(self) -> None:
        """Wait until the framework has taken over from the first view, as it does once somebody asks on."""
        self.page.evaluate("() => { window.tmDraft?.wake(); document.querySelector('#tm-first textarea')?.focus(); }")
        self.page.wait_for_selector("#tm-first", state="detached")
        self.page.wait_for_selector("#tm-question textarea, #tm-kb")

    def attach(self, *files: tuple[str, str]) -> None:
        """Give files as the file dialogue would, and wait until each is recognised."""
        payload = [{"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files]
        self.page.set_input_files("#tm-question input[type=file]", payload)
        self.page.wait_for_function(
            "count => document.querySelectorAll('#tm-chips-box .tm-chip').length === count", arg=len(files)
        )

    def ask(self, question: str) -> None:
        """Write a question and send it."""
        self.page.fill("#tm-question textarea", question)
        self.page.press("#tm-question textarea", "Enter")

    def answered(self) -> str:
        """Wait for the whole answer; its id."""
        self.page.wait_for_selector(".tm-after[data-answer]")
        self.page.wait_for_function("location.search.includes(document.querySelector('.tm-after').dataset.answer)")
        return str(self.page.get_attribute(".tm-after", "data-answer"))

    def dress(self, scheme: str) -> None:
        """Switch to the dark or the light colours, and wait until they are there."""
        if self.page.evaluate("document.body.classList.contains('dark')") != (scheme == "dark"):
            self.page.click("[data-tm-theme]")

    def violations(self) -> list[str]:
        """What breaks WCAG 2.2 A or AA on the page as it is now: the rule, and where."""
        if not self.page.evaluate("Boolean(window.axe)"):
            self.page.evaluate(axe_source())
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
        found = self.page.evaluate(
            "tags => axe.run({runOnly: {type: 'tag', values: tags}, resultTypes: ['violations']})", tags
        )
        assert len(found["passes"]) > MIN_CHECKS
        return [f"{each['id']}: {node['target']}" for each in found["violations"] for node in each["nodes"]]


def broken(page: Tab, *widths: int) -> dict[str, list[str]]:
    """What breaks a rule of accessibility in both schemes, by how it was looked at."""
    found = {}
    for width in widths:
        page.page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.dress(scheme)
            found[f"{scheme} {width}"] = page.violations()
            if page.page.locator('[data-tm-tab="evidence"]').is_visible():
                page.page.click('[data-tm-tab="evidence"]')
                found[f"{scheme} {width} evidence"] = page.violations()
                page.page.click('[data-tm-tab="answer"]')
    page.page.set_viewport_size({"width": 1440, "height": 900})
    return {where: each for where, each in found.items() if each}


def opened(context: Any, url: str, width: int = 1440, height: int = 900) -> Tab:
    """A new tab."""
    made = Tab(page=context.new_page(), url=url)
    made.page.set_viewport_size({"width": width, "height": height})
    made.page.on("request", lambda request: made.requests.append(request.url))
    made.page.on("pageerror", lambda error: made.errors.append(str(error)))
    made.page.on(
        "console", lambda message: made.errors.append(message.text) if "Security Policy" in message.text else None
    )
    return made


def checked(*tabs: Tab) -> None:
    """Nothing may have gone out, been refused by the browser, or failed."""
    assert [each.outside for each in tabs if each.outside] == []
    assert [each.errors for each in tabs if each.errors] == []


@pytest.fixture(scope="package")
def context(browser: Any) -> Iterator[Callable[..., Any]]:
    """Makes profiles of the browser."""
    made: list[Any] = []

    def new(**options: Any) -> Any:
        context = browser.new_context(**PROFILE | options)
        context.set_default_timeout(PATIENCE_MS)
        made.append(context)
        return context

    yield new
    for each in made:
        each.close()


@pytest.fixture(scope="package")
def profile(context: Callable[..., Any]) -> Any:
    """The profile of all tests that need none of their own: the framework's files are fetched and compiled once."""
    return context(permissions=["clipboard-read", "clipboard-write"])


@pytest.fixture
def tab(context: Callable[..., Any], profile: Any, served: Served) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; with options of a profile in one of its own."""
    tabs: list[Tab] = []

    def open_tab(url: str = served.url, width: int = 1440, height: int = 900, **options: Any) -> Tab:
        where = context(**options) if options or url not in (served.url, served.plain) else profile
        tabs.append(opened(where, url, width, height))
        return tabs[-1]

    yield open_tab
    for each in tabs:
        if each.page.context is profile and each.requests:
            each.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        each.page.close()
    profile.clear_cookies()
    checked(*tabs)
