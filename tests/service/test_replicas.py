"""Two processes of the service over one PostgreSQL and one data folder are one service."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ui.test_reload import PAGE

PATIENCE_S = 120.0
QUESTION = "why does the frobnicated loss rise?"


@contextmanager
def serving(database: str, data: Path, pages: Path, log: Path) -> Iterator[tuple[httpx.Client, int]]:
    """A service process: its client and its process id."""
    environment = os.environ | {
        "TRAINMEDIC_DATABASE_URL": database,
        "TRAINMEDIC_DATA_DIR": str(data),
        "TRAINMEDIC_KB_PATHS": str(pages),
        "TRAINMEDIC_RELOAD_S": "0.2",
        "TRAINMEDIC_PAGES": "false",
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with log.open("w") as errors:
        command = [sys.executable, "-m", "trainmedic", "serve", "--port", port]
        process = subprocess.Popen(command, env=environment, stderr=errors, start_new_session=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            until(lambda: ready(client))
            yield client, process.pid
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.wait(PATIENCE_S)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def ready(client: httpx.Client) -> bool:
    try:
        response = client.get("/readyz")
    except httpx.TransportError:
        return False
    assert "status" in response.json(), f"{response.status_code} {response.text}"
    return bool(response.json()["status"] == "ok")


def index_of(client: httpx.Client) -> str:
    return str(client.get("/version").json()["index"])


def ask(client: httpx.Client, question: str, conversation: str | None = None) -> Any:
    body: dict[str, Any] = {"question": question, "attachments": [], "conversation_id": conversation}
    response = client.post("/v1/ask", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def write_page(pages: Path, edition: int) -> None:
    path = pages / "frobnicated-loss.md"
    path.with_suffix(".new").write_text(PAGE.format(id=path.stem, edition=edition), encoding="utf-8")
    path.with_suffix(".new").replace(path)


@pytest.mark.slow
def test_two_processes_share_conversations_feedback_links_and_knowledge_and_lose_nothing_to_a_kill(
    postgres_database: str, knowledge_folder: Path, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    with ExitStack() as stack:
        starts = [
            serving(postgres_database, tmp_path / "data", pages, tmp_path / f"{name}.log") for name in ("one", "two")
        ]
        # At once, so that they migrate the empty database at the same time.
        with ThreadPoolExecutor(2) as threads:
            (one, killed), (two, _) = threads.map(stack.enter_context, starts)

        # A conversation begun in one process goes on in the other, which shows and rates its answers.
        first = ask(one, "loss is nan from the first step")
        second = ask(two, "still failing", first["conversation_id"])
        assert second["conversation_id"] == first["conversation_id"]
        assert two.get(f"/v1/answers/{first['id']}").json() == first
        reaction = {"answer_id": first["id"], "reaction": "resolved"}
        assert two.post("/v1/feedback", json=reaction).status_code == 200
        assert one.get(f"/v1/answers/{second['id']}").json() == second

        # Both take up a changed page.
        before = index_of(one)
        write_page(pages, 1)
        until(lambda: before not in {index_of(one), index_of(two)})
        assert index_of(one) == index_of(two)
        assert "Edition 1" in str(ask(two, QUESTION)["causes"][0]["title"])

        # One dies in the middle of its work: the other has everything that was answered.
        def answered(number: int) -> Any:
            with suppress(httpx.TransportError):
                return ask(one, f"loss is nan at step {number}")
            return None

        with ThreadPoolExecutor(4) as threads:
            answers = [threads.submit(answered, number) for number in range(40)]
            until(lambda: sum(answer.done() for answer in answers) >= 8)
            os.kill(killed, signal.SIGKILL)
            given = [answer.result() for answer in answers if answer.result() is not None]
        assert 8 <= len(given) < 40
        assert [answer["id"] for answer in given if two.get(f"/v1/answers/{answer['id']}").json() != answer] == []
