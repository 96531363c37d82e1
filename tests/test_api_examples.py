"""The examples of the documentation, executed as they stand against the service on a real socket.

Every fenced block with a ``$ curl`` or ``$ trainmedic`` command runs in bash, all its commands in one shell, and prints
what it must print below it, where a line ``...`` stands for any further lines. Every ```` ```python ```` block of
docs/connect/python.md runs as one program, in one namespace, as a reader would type them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.every_case import every_case
from tests.incidents import KTO_SINGLE, SWIFT_LOG
from tests.live import Live
from tests.openai_app import openai_app
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.context import AppContext
from trainmedic.ui.mcp.http import attach
from trainmedic.ui.mcp.server import make_server

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/connect/api.md", "docs/connect/mcp.md", "docs/connect/python.md", "docs/connect/ci.md")
ADDRESS = "http://127.0.0.1:8000"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "--- end of one command ---"
ANY = "..."


def fences(page: str) -> list[tuple[str, str]]:
    return FENCE.findall((ROOT / page).read_text(encoding="utf-8"))


def blocks() -> list[tuple[str, str]]:
    """Page and text of every block that calls the service or the command line."""
    every = [(page, text) for page in PAGES for _, text in fences(page)]
    return [(page, text) for page, text in every if re.search(r"^\$ (.*\bcurl |trainmedic )", text, re.MULTILINE)]


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a block, here-documents included, with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    lines = iter(block.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            assert found, f"output before any command: {line}"
            found[-1][1].append(line)
            continue
        command = line.removeprefix("$ ")
        while command.endswith("\\"):
            command += "\n" + next(lines)
        heredoc = re.search(r"<<'?(\w+)'?", command)
        while heredoc is not None and not command.endswith(f"\n{heredoc[1]}"):
            command += "\n" + next(lines)
        found.append((command, []))
    return found


def accepted(command: str) -> str:
    """The command; findings, with which the command line exits with 1, are no failure."""
    return f"{command} || [ $? = 1 ]" if command.startswith("trainmedic ") else command


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines printed are those shown; ``...`` stands for any number of them."""
    if not shown:
        return not printed
    if shown[0] == ANY:
        return any(matches(shown[1:], printed[n:]) for n in range(len(printed) + 1))
    return bool(printed) and shown[0].rstrip() == printed[0].rstrip() and matches(shown[1:], printed[1:])


@pytest.fixture(scope="module")
def live(knowledge_advisor: Advisor) -> Iterator[Live]:
    history = History("sqlite://")
    advisor = Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history))
    settings = Settings()
    app = openai_app(advisor, settings)
    attach(
        app,
        AppContext(settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=run_inline),
        make_server,
    )
    with Live(app) as live:
        yield live
    history.close()


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="needs curl and bash")
@pytest.mark.parametrize(("page", "block"), blocks(), ids=lambda value: value.splitlines()[0][:60])
def test_an_example_of_the_documentation_prints_what_stands_below_it(
    live: Live, page: str, block: str, tmp_path: Path
) -> None:
    steps = commands(block)
    script = "\n".join(f"{accepted(command)}\nprintf '\\n%s\\n' '{MARK}'" for command, _ in steps)
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script.replace(ADDRESS, live.url)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == 0, f"{page}: {done.stderr}\n{done.stdout}"
    printed = [part.strip("\n").splitlines() for part in done.stdout.split(MARK)]
    for (command, shown), lines in zip(steps, printed, strict=False):
        expected = [line.replace(ADDRESS, live.url) for line in "\n".join(shown).strip("\n").splitlines()]
        assert matches(expected, lines), f"{page}: {command}\nprinted:\n" + "\n".join(lines)


def test_there_are_examples_of_every_call() -> None:
    told = "\n".join(text for page, text in blocks() if page == "docs/connect/api.md")
    for path in (
        "/v1/ask", "/v1/answers/", "/v1/check", "/v1/search", "/v1/cases", "/v1/rules", "/v1/feedback",
        "/v1/chat/completions", "/v1/models", "/readyz", "/version",
    ):  # fmt: skip
        assert path in told, path


def test_the_programs_of_the_python_page_print_what_it_says(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.sh").write_text(KTO_SINGLE)
    (tmp_path / "train.log").write_text(SWIFT_LOG)
    monkeypatch.chdir(tmp_path)
    found = fences("docs/connect/python.md")
    programs = [text.replace(ADDRESS, live.url) for kind, text in found if kind == "python"]
    assert len(programs) >= 3
    (tmp_path / "program.py").write_text("\n".join(programs), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [line for kind, text in found if kind == "text" for line in text.splitlines()]
    assert matches([line for line in printed if line], [line for line in done.stdout.splitlines() if line]), done.stdout


@every_case(
    ("shown", "printed", "same"),
    [
        (["a", "..."], ["a", "b", "c"], True), (["a", "...", "c"], ["a", "c"], True),
        (["a", "...", "d"], ["a", "b", "c"], False), (["a"], ["a", "b"], False), (["a", "b"], ["a"], False),
        ([], ["a"], False),
    ],
)  # fmt: skip
def test_output_that_differs_is_noticed(shown: list[str], printed: list[str], same: bool) -> None:
    assert matches(shown, printed) is same
