"""One server with a scripted model, and one browser, for all browser tests of the pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.fake_model import FakeModel, Reply
from trainmedic.service.storage.history import History

ROOT = Path(__file__).parents[3]
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
PATIENCE_S = 60.0
WRITTEN = (
    "The loss is NaN because ",
    "`--vanilla_loss` meets a micro-batch of one [1]. ",
    "<img src=//evil.example/x onerror=window.hacked=1> ",
    "![x](https://evil.example/y) ",
    "Remove the flag [1]",
    ".",
)
"""What the scripted model writes; some of it is hostile."""
QUICK_S, SLOW_S = 0.02, 0.15
"""Pauses between its pieces: for tests of the finished page, and for those of how it comes about."""


@dataclass(slots=True, kw_only=True)
class Served:
    """A running service. ``url`` has no slash at its end."""

    url: str
    history: History
    model: FakeModel


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """The service as a process of its own; ready when its first page answers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GRADIO", "TRAINMEDIC"))}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.ui.chat.serving", str(folder), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=environment | {"HOME": str(folder)},
    )
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        wait_until(lambda: status_of(f"{url}/") in (200, 401))
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


def status_of(url: str) -> int:
    """The status of a GET, 0 where nothing listens yet."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "text/html"})) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for something that no event tells of."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="session")
def data_folder(knowledge_advisor: object, knowledge_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the indexed knowledge for the served process."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(knowledge_folder, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def served(data_folder: Path) -> Iterator[Served]:
    """The service with a model that writes `WRITTEN`."""
    with (
        FakeModel(Reply(*WRITTEN, between_s=QUICK_S)) as model,
        serving(data_folder, "--model", model.url) as url,
    ):
        history = History(f"sqlite:///{data_folder / 'history.sqlite3'}")
        yield Served(url=url, history=history, model=model)
        history.close()


@pytest.fixture
def slow_model(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model pauses between its pieces for long enough that a browser shows each of them."""
    monkeypatch.setattr(served.model, "_script", (Reply(*WRITTEN, between_s=SLOW_S),))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window. For one module: while it is open, no other test can run an event loop."""
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
        """Wait until the framework has taken over from the first view, as it does once somebody moves."""
        self.page.evaluate(
            "() => { dispatchEvent(new Event('pointermove')); document.querySelector('#tm-first textarea')?.focus(); }"
        )
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


@pytest.fixture(scope="module")
def profile(browser: Any) -> Iterator[Any]:
    """The profile of all tests that need none of their own: the framework's files are fetched and compiled once."""
    context = browser.new_context(**PROFILE)
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def tab(browser: Any, profile: Any, served: Served) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; with options of a profile in one of its own. Nothing may have gone out, or be left, at the end."""
    contexts: list[Any] = []
    tabs: list[Tab] = []

    def opened(url: str = served.url, width: int = 1440, height: int = 900, **options: Any) -> Tab:
        context = profile
        if options or url != served.url:
            context = browser.new_context(**PROFILE | options)
            context.set_default_timeout(PATIENCE_MS)
            contexts.append(context)
        made = Tab(page=context.new_page(), url=url)
        made.page.set_viewport_size({"width": width, "height": height})
        made.page.on("request", lambda request: made.requests.append(request.url))
        made.page.on("pageerror", lambda error: made.errors.append(str(error)))
        tabs.append(made)
        return made

    yield opened
    for each in tabs:
        if each.page.context is profile and each.requests:
            each.page.evaluate("localStorage.clear()")
    for page in profile.pages:
        page.close()
    profile.clear_cookies()
    for context in contexts:
        context.close()
    assert [each.outside for each in tabs if each.outside] == []
    assert [each.errors for each in tabs if each.errors] == []
