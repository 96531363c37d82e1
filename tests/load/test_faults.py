"""What goes away, fills up, breaks or is killed costs its own request at the most; nothing acknowledged is lost."""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.fake_model import FakeModel, diagnosis, hypothesis
from tests.load.service import PATIENCE_S, Service, Wire, until
from tests.ui.test_reload import PAGE

Start = Callable[..., Service]
NOT_STORED = "The database cannot be reached"
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def missing(service: Service, answers: list[Any]) -> list[str]:
    """The acknowledged answers that the service does not have, or has otherwise."""
    return [a["id"] for a in answers if service.client.get(f"/v1/answers/{a['id']}").json() != a]


def acknowledged(service: Service, question: str) -> Any:
    """The answer, or None if the service went away before it was whole."""
    with suppress(httpx.TransportError):
        response = service.ask(question)
        if response.status_code == 200:
            return response.json()
    return None


def test_kills_while_answers_are_written_lose_nothing_that_was_acknowledged(start: Start) -> None:
    answers: list[Any] = []
    for kill in range(5):
        service = start()
        assert missing(service, answers) == []
        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(acknowledged, service, f"loss is nan at step {kill}{n}") for n in range(40)]
            until(lambda asked=asked: sum(each.done() for each in asked) >= 6)
            service.process.kill()
        answers += [each.result() for each in asked if each.result() is not None]
        service.kill()
    assert len(answers) >= 30
    assert missing(start(), answers) == []


def test_slow_clients_and_those_who_leave_cost_nobody_else_anything(start: Start) -> None:
    service = start()
    before = service.memory_mb()
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(60)]
    for client in slow:
        client.sendall(b"POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n")
        client.sendall(b'content-length: 100000\r\n\r\n{"question": "lo')
    for _ in range(20):  # answers that nobody waits for
        with service.client.stream("POST", "/v1/ask", json={"question": "loss is nan", "stream": True}) as response:
            next(response.iter_bytes())
    began = time.monotonic()
    assert [service.ask().status_code for _ in range(10)] == [200] * 10
    assert time.monotonic() - began < 30
    for client in slow:
        client.close()
    assert service.ask().status_code == 200
    assert service.memory_mb() < before + 200


def wired(database: str) -> tuple[Wire, str]:
    """A wire to the database, and its URL at the other end."""
    parts = urlsplit(database)
    folder = parse_qs(parts.query).get("host", [""])[0] or (parts.hostname or "")
    wire = Wire(next(str(path) for path in Path(folder).glob(".s.PGSQL.*") if path.suffix != ".lock"))
    return wire, f"postgresql://{parts.username}@127.0.0.1:{wire.port}{parts.path}"


def test_a_database_that_goes_away_and_comes_back(start: Start, postgres_database: str) -> None:
    wire, url = wired(postgres_database)
    service = start(database_url=url)
    stored = [service.ask(f"loss is nan at step {n}").json() for n in range(5)]
    wire.cut()
    during = service.ask()
    assert during.status_code == 200
    assert any(NOT_STORED in notice for notice in during.json()["notices"])
    refused = service.client.get(f"/v1/answers/{stored[0]['id']}")
    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
    wire.mend()
    until(lambda: not any(NOT_STORED in notice for notice in service.ask().json()["notices"]))
    assert missing(service, stored) == []
    wire.close()


def timed(service: Service, path: str) -> tuple[httpx.Response, float]:
    began = time.monotonic()
    response = service.client.get(path)
    return response, time.monotonic() - began


def test_a_database_that_hangs_costs_no_replica_its_place_and_comes_back(start: Start, postgres_database: str) -> None:
    wire, url = wired(postgres_database)
    service = start(database_url=url)
    stored = service.ask().json()
    wire.freeze()
    for _ in range(8):
        time.sleep(1)
        ready, seconds = timed(service, "/readyz")
        assert (ready.status_code, seconds < 2.5) == (200, True)
        figures, seconds = timed(service, "/metrics")
        assert (figures.status_code, seconds < 5) == (200, True)
    assert (ready.json()["status"], ready.json()["down"]) == ("degraded", {"history": "timeout"})
    during = service.ask()
    assert during.status_code == 200
    assert any(NOT_STORED in notice for notice in during.json()["notices"])
    wire.mend()
    until(lambda: service.client.get("/readyz").json()["status"] == "ok")
    assert missing(service, [stored]) == []
    wire.close()


def test_a_service_whose_database_hangs_ends_when_it_is_told_to(start: Start, postgres_database: str) -> None:
    wire, url = wired(postgres_database)
    service = start(database_url=url, request_timeout_s="2")
    service.ask()
    wire.freeze()
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(acknowledged, service, "loss is nan") for _ in range(2)]
        time.sleep(0.5)
        service.process.terminate()
        told = time.monotonic()
        assert service.process.wait(PATIENCE_S) == 0
        assert time.monotonic() - told < 10
        assert len([each.result() for each in asked]) == 2
    until(service.has_ended)
    wire.close()


CLEAR = "why is the loss nan? deepspeed --module openrlhf.cli.train_kto --vanilla_loss --micro_train_batch_size 1"


def test_a_model_that_goes_away_and_comes_back(start: Start) -> None:
    with FakeModel(forms=[diagnosis(hypothesis())]) as model:
        wire = Wire(int(urlsplit(model.url).port or 0))
        service = start(model_base_url=f"http://127.0.0.1:{wire.port}/v1")
        assert service.ask(CLEAR).json()["mode"] == "llm"
        wire.cut()
        without = service.ask(CLEAR).json()
        assert (without["mode"], bool(without["causes"])) == ("deterministic", True)
        wire.mend()
        until(lambda: service.ask(CLEAR).json()["mode"] == "llm")
        wire.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_said_and_survived(start: Start, small_disk: Path) -> None:
    service = start(database_url=f"sqlite:///{small_disk / 'history.sqlite3'}")
    stored = [service.ask(f"loss is nan at step {n}").json() for n in range(5)]
    with (small_disk / "ballast").open("wb") as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(65536))
            ballast.flush()
    answers = [service.ask(f"loss is inf at step {n}") for n in range(40)]
    assert {answer.status_code for answer in answers} == {200}
    refused = [a.json() for a in answers if any(NOT_STORED in notice for notice in a.json()["notices"])]
    assert refused
    (small_disk / "ballast").unlink()
    stored += [answer.json() for answer in answers if answer.json() not in refused]
    assert not any(NOT_STORED in notice for notice in service.ask().json()["notices"])
    assert missing(service, stored) == []


def write_page(folder: Path, edition: int) -> None:
    page = folder / "frobnicated-loss.md"
    page.with_suffix(".new").write_text(PAGE.format(id=page.stem, edition=edition), encoding="utf-8")
    page.with_suffix(".new").replace(page)


def edition(service: Service) -> str:
    return str(service.ask("why does the frobnicated loss rise?").json()["causes"][0]["title"])


def test_a_damaged_index_is_made_anew_and_never_answers(start: Start, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    write_page(pages, 1)
    service = start(kb_paths=str(pages))
    whole, name = edition(service), service.client.get("/version").json()["index"]
    service.kill()
    index = service.data / "index" / name
    largest = sorted((path for path in index.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)[-3:]
    for path in largest:
        content = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(content[: len(content) // 2])
        again = start(kb_paths=str(pages))
        assert edition(again) == whole, path.name
        again.kill()


def test_kills_while_the_index_is_switched_leave_a_whole_one(start: Start, tmp_path: Path) -> None:
    pages, chance = tmp_path / "pages", random.Random(7)
    pages.mkdir()
    write_page(pages, 0)
    for number in range(1, 5):
        service = start(kb_paths=str(pages))
        assert edition(service) == f"Edition {number - 1} of the frobnicated loss"
        write_page(pages, number)
        time.sleep(chance.uniform(0.2, 6))
        service.kill()
    assert edition(start(kb_paths=str(pages))) == "Edition 4 of the frobnicated loss"


@pytest.mark.skipif(not FAKETIME, reason="libfaketime is not installed")
def test_a_clock_that_jumps_changes_no_answer_and_locks_nobody_out(start: Start, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0")
    fake = {"LD_PRELOAD": str(FAKETIME[0]), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    service = start(**fake, DONT_FAKE_MONOTONIC="1", FAKETIME_DONT_FAKE_MONOTONIC="1")
    stored = [service.ask().json()]
    for jump in ("+3h", "-2d", "+40d", "+0"):
        clock.write_text(jump)
        answer = service.ask()
        assert answer.status_code == 200, jump
        stored.append(answer.json())
        assert missing(service, stored[-1:]) == [], jump
    assert [cause["case_id"] for cause in stored[0]["causes"]] == [cause["case_id"] for cause in stored[-1]["causes"]]
