"""Renewing the knowledge of a running service: all at once, never a mixture, never a broken page."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.store.knowledge import HashEmbedder
from trainmedic.kb.errors import StoreError
from trainmedic.kb.glossary.terms import BUILT_IN
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.store import build, shipped
from trainmedic.kb.store.embedder import OnnxEmbedder
from trainmedic.kb.store.index import open_index
from trainmedic.kb.threads.store import FILE
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, final_answer
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui import loading
from trainmedic.ui.indexing import add_vectors
from trainmedic.ui.loading import THREADS, read_pages
from trainmedic.ui.reload import Reloader, state_of

PAGE = """---
id: {id}
title: {{en: "Edition {edition} of the frobnicated loss", zh: "第 {edition} 版"}}
kind: fault
family: nan-loss
frameworks: [trl]
evidence: reporter
reviewed: 2026-11-21
symptoms:
  en: ["frobnicated loss rises in edition {edition}"]
  zh: ["frobnicated loss 上升"]
sources:
  - {{url: "https://example.org/1", says: reporter}}
---

## en

### Symptom

The frobnicated loss rises.

### Cause

The frobnicator of edition {edition} is on.

### Fix

Switch it off.

### How to confirm

Look at it.

## zh

### 现象

上升。

### 原因

开着。

### 修复

关掉。

### 如何确认

看一看。
"""
QUESTION = "why does the frobnicated loss rise?"
ADMIN = {"authorization": "Bearer boss"}


class Place:
    """A data folder and a folder of one's own pages over a package without pages."""

    def __init__(self, root: Path) -> None:
        self.pages = root / "pages"
        self.builtin = root / "kb"
        for name in ("causes", "mechanisms", "defects", "glossary"):
            (self.builtin / name).mkdir(parents=True)
        (self.builtin / "glossary" / "glossary.yaml").write_bytes(BUILT_IN.read_bytes())
        self.pages.mkdir()
        self.settings = Settings.model_validate(
            {
                "data_dir": root / "data",
                "kb_paths": str(self.pages),
                "admin_keys": "boss",
                "database_url": f"sqlite:///{root / 'history.sqlite3'}",
            }
        )
        self.write(0)

    def write(self, edition: int, id: str = "frobnicated-loss") -> None:
        path = self.pages / f"{id}.md"
        path.with_suffix(".new").write_text(PAGE.format(id=id, edition=edition), encoding="utf-8")
        path.with_suffix(".new").replace(path)

    def advisor(self, *, at_once: bool = False) -> Advisor:
        return Advisor(
            loading.load_knowledge(self.settings, at_once=at_once), parse, Memory(History(self.settings.history_url))
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    embedder = HashEmbedder("all-MiniLM-L6-v2 int8")

    def read(folders: Any = (), builtin: Path = made.builtin) -> loading.Pages:
        return read_pages(folders, builtin)

    for module in ("loading", "reload"):
        monkeypatch.setattr(f"trainmedic.ui.{module}.read_pages", read)
    monkeypatch.setattr(loading, "embedder_of", lambda settings: embedder)
    monkeypatch.setattr(shipped, "index", lambda: tmp_path / "no-package")
    return made


def edition_of(answer: Any) -> str:
    return str(answer.causes[0].title)


# --- reload ---------------------------------------------------------------------------------------------------------


def test_an_edited_page_is_answered_from_after_a_reload_and_not_before(place: Place) -> None:
    advisor = place.advisor()
    reloader = Reloader(place.settings, advisor)
    first = advisor.ask(Ask(question=QUESTION))
    place.write(1)
    assert advisor.ask(Ask(question=QUESTION)).kb_version == first.kb_version
    assert reloader.reload()
    second = advisor.ask(Ask(question=QUESTION))
    assert (edition_of(first), edition_of(second)) == tuple(f"Edition {n} of the frobnicated loss" for n in (0, 1))
    assert second.kb_version != first.kb_version
    assert not reloader.reload()


def test_only_the_edited_texts_are_embedded(place: Place) -> None:
    advisor = place.advisor()
    embedder = advisor.knowledge.embedder
    assert isinstance(embedder, HashEmbedder)
    for number in range(20):
        place.write(number, f"other-{number}")
    reloader = Reloader(place.settings, advisor)
    reloader.reload()
    asked = embedder.asked
    place.write(99)
    reloader.reload()
    assert 0 < embedder.asked - asked < 15


@pytest.mark.parametrize("page", ["no front matter", "---\n: [\n---\n"])
def test_a_broken_page_leaves_the_old_version_serving_and_is_named(place: Place, page: str) -> None:
    advisor = place.advisor()
    reloader = Reloader(place.settings, advisor)
    served = advisor.knowledge
    (place.pages / "broken.md").write_text(page)
    place.write(1)
    assert not reloader.reload()
    assert advisor.knowledge is served
    assert reloader.problem is not None
    assert "pages/broken.md:" in reloader.problem
    (place.pages / "broken.md").unlink()
    assert reloader.reload()
    assert reloader.problem is None


def failing(*errors: Exception) -> Callable[..., Knowledge]:
    """Makes knowledge only after it has failed with these errors."""
    left = list(errors)

    def make(*inputs: Any, **options: Any) -> Knowledge:
        if left:
            raise left.pop(0)
        return loading.knowledge_of(*inputs, **options)

    return make


def test_an_answer_that_began_before_a_reload_ends_with_what_it_began_with(place: Place) -> None:
    advisor = place.advisor()
    reloader = Reloader(place.settings, advisor)
    begun = advisor.knowledge

    async def run(call: Any) -> Any:
        result = call()
        place.write(1)
        reloader.reload()
        return result

    answer = asyncio.run(final_answer(TemplateAnswerer(advisor).stream(Ask(question=QUESTION), "", run)))
    assert advisor.knowledge is not begun
    assert (edition_of(answer), answer.kb_version) == ("Edition 0 of the frobnicated loss", begun.cases.version)
    assert advisor.memory.history is not None
    assert advisor.memory.history.stored_answer(answer.id) is not None


@pytest.mark.slow
def test_no_request_is_dropped_and_no_answer_mixes_versions_while_the_knowledge_is_renewed(place: Place) -> None:
    advisor = place.advisor()
    reloader = Reloader(place.settings, advisor)
    editions = {advisor.knowledge.cases.version: "Edition 0 of the frobnicated loss"}
    done = threading.Event()
    answers: list[tuple[int, Any]] = []

    def ask(client: TestClient) -> None:
        while not done.is_set():
            response = client.post("/v1/ask", json={"question": QUESTION})
            answers.append((response.status_code, response.json()))

    with TestClient(create_app(advisor, place.settings, library=reloader), base_url="http://127.0.0.1") as client:
        threads = [threading.Thread(target=ask, args=(client,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for edition in range(1, 9):
            place.write(edition)
            assert client.post("/v1/admin/reload", headers=ADMIN).json()["problem"] is None
            editions[advisor.knowledge.cases.version] = f"Edition {edition} of the frobnicated loss"
        done.set()
        for thread in threads:
            thread.join()
    assert {status for status, _ in answers} == {200}
    assert len(editions) == 9
    assert len({answer["kb_version"] for _, answer in answers}) > 2
    for _, answer in answers:
        title = editions[answer["kb_version"]]
        assert answer["causes"][0]["title"] == title
        assert title.split()[1] in answer["causes"][0]["cause"]
        assert all(citation["title"] == title for citation in answer["citations"] if citation["kind"] == "case")


def test_a_running_service_tries_again_what_failed_through_no_fault_of_the_pages(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    advisor = place.advisor()
    make = failing(StoreError("the disk is full"), StoreError("the index is being written"))
    monkeypatch.setattr("trainmedic.ui.reload.knowledge_of", make)
    reloader = Reloader(place.settings, advisor, retry_s=0.1, every_s=0.05)
    first = advisor.knowledge
    place.write(1)
    assert not reloader.reload()
    assert (advisor.knowledge is first, reloader.problem) == (True, "the disk is full")
    with TestClient(create_app(advisor, place.settings, background=[reloader.running])):
        assert until(lambda: advisor.knowledge is not first)
    assert reloader.problem is None


def test_a_running_service_notices_changed_pages_and_the_first_threads(place: Place) -> None:
    advisor = place.advisor()
    reloader = Reloader(place.settings, advisor, every_s=0.05)
    with TestClient(create_app(advisor, place.settings, background=[reloader.running])):
        first = advisor.knowledge
        place.write(1)
        assert until(lambda: advisor.knowledge is not first)
        second = advisor.knowledge
        loading.threads_of(place.settings, second.embedder)
        assert (place.settings.data_dir / THREADS / FILE).exists()
        assert until(lambda: advisor.knowledge.threads is not None)


def test_only_pages_count_as_changes(place: Place) -> None:
    before = state_of(place.settings)
    (place.pages / "notes.txt").write_text("nothing to see")
    assert state_of(place.settings) == before
    os.utime(place.pages / "frobnicated-loss.md", (1, 1))
    assert state_of(place.settings) != before


def until(condition: Any) -> bool:
    for _ in range(1_000):
        if condition():
            return True
        time.sleep(0.02)
    return False


# --- an index of words only -----------------------------------------------------------------------------------------


class Embedding:
    """Makes the vectors in this process as soon as it may; fails the first ``failures`` times."""

    def __init__(self, place: Place, failures: int = 0) -> None:
        self.may = threading.Event()
        self.names: list[str] = []
        self._place, self._failures = place, failures

    async def __call__(self, settings: Settings, name: str, report: Callable[[int], None]) -> None:
        self.names.append(name)
        report(37)
        if len(self.names) <= self._failures:
            raise StoreError("the disk is full")
        while not self.may.is_set():
            await asyncio.sleep(0.01)
        root, embedder = loading.index_root(settings), loading.embedder_of(settings)
        build.add_vectors(root, name, embedder, self._place.builtin / "none")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new text is one too many to wait for."""
    monkeypatch.setattr(build, "FEW", 0)
    monkeypatch.setattr("trainmedic.ui.reload.SETTLE_S", 0.0)


def test_a_first_start_answers_by_words_and_switches_when_the_vectors_are_there(place: Place, hasty: None) -> None:
    advisor = place.advisor(at_once=True)
    embedding = Embedding(place)
    reloader = Reloader(place.settings, advisor, embed=embedding, every_s=0.05)
    app = create_app(advisor, place.settings, background=[reloader.running])
    with TestClient(app, base_url="http://127.0.0.1") as client:

        def ask(**fields: str) -> Any:
            response = client.post("/v1/ask", json={"question": QUESTION, **fields})
            assert response.status_code == 200
            return response.json()

        assert until(lambda: advisor.embedded_percent == 37)
        ready = client.get("/readyz").json()
        assert (ready["index"], ready["embedded_percent"]) == ("building", 37)
        first = ask()
        assert first["causes"][0]["title"] == "Edition 0 of the frobnicated loss"
        assert first["words_only"]
        assert any("37 %" in notice for notice in first["notices"])
        assert any("37 %" in notice and "词语" in notice for notice in ask(language="zh")["notices"])
        embedding.may.set()
        assert until(lambda: not advisor.knowledge.index.words_only)
        ready = client.get("/readyz").json()
        assert (ready["index"], ready["embedded_percent"]) == ("ready", 100)
        second = ask()
    assert not second["words_only"]
    assert not any("%" in notice for notice in second["notices"])
    assert second["kb_version"] == first["kb_version"]
    assert place.advisor(at_once=True).knowledge.index.vectors.size


def test_pages_that_change_meanwhile_are_answered_from_at_once_and_embedded_instead(place: Place, hasty: None) -> None:
    advisor = place.advisor(at_once=True)
    embedding = Embedding(place)
    reloader = Reloader(place.settings, advisor, embed=embedding, every_s=0.05)
    with TestClient(create_app(advisor, place.settings, background=[reloader.running])):
        assert until(lambda: embedding.names)
        place.write(1)
        assert until(lambda: len(embedding.names) == 2)
        assert edition_of(advisor.ask(Ask(question=QUESTION))) == "Edition 1 of the frobnicated loss"
        assert advisor.knowledge.index.words_only
        embedding.may.set()
        assert until(lambda: not advisor.knowledge.index.words_only)
    assert edition_of(advisor.ask(Ask(question=QUESTION))) == "Edition 1 of the frobnicated loss"
    assert advisor.knowledge.index.manifest.id == embedding.names[1] != embedding.names[0]


def test_embedding_that_fails_is_named_and_tried_again(place: Place, hasty: None) -> None:
    advisor = place.advisor(at_once=True)
    embedding = Embedding(place, failures=1)
    reloader = Reloader(place.settings, advisor, embed=embedding, retry_s=0.1, every_s=0.05)
    with TestClient(create_app(advisor, place.settings, background=[reloader.running])):
        assert until(lambda: reloader.problem == "the disk is full")
        assert advisor.ask(Ask(question=QUESTION)).words_only
        embedding.may.set()
        assert until(lambda: not advisor.knowledge.index.words_only)
    assert reloader.problem is None


@pytest.mark.slow
def test_a_process_of_its_own_makes_the_vectors_and_says_why_it_cannot(
    place: Place, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "embedder_of", lambda settings: OnnxEmbedder())
    knowledge = loading.load_knowledge(place.settings, at_once=True)
    name, percents = knowledge.index.manifest.id, list[int]()
    asyncio.run(add_vectors(place.settings, name, percents.append))
    opened = open_index(loading.index_root(place.settings) / name, knowledge.embedder)
    assert not opened.words_only
    assert percents[-1] == 100
    with pytest.raises(StoreError, match="no index at"):
        asyncio.run(add_vectors(place.settings, "unknown", percents.append))


# --- administrators -------------------------------------------------------------------------------------------------


@pytest.fixture
def client(place: Place) -> Iterator[TestClient]:
    advisor = place.advisor()
    reloader = Reloader(place.settings, advisor)
    app = create_app(advisor, place.settings, {"reload": reloader.trouble}, library=reloader)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def test_only_an_administrator_may_exchange_the_knowledge(client: TestClient, place: Place) -> None:
    for method, path in (("get", "index"), ("post", "reload")):
        for headers in ({}, {"authorization": "Bearer someone"}):
            assert client.request(method, f"/v1/admin/{path}", headers=headers).status_code == 401
    assert client.get("/v1/admin/index", headers=ADMIN).status_code == 200
    assert client.post("/v1/ask", json={"question": QUESTION}).status_code == 200
    without = place.settings.model_copy(update={"admin_keys": Settings().admin_keys})
    advisor = place.advisor()
    with TestClient(create_app(advisor, without, library=Reloader(without, advisor))) as other:
        assert other.get("/v1/admin/index", headers=ADMIN).status_code == 404


def test_an_administrator_renews_the_knowledge_and_sees_why_pages_are_not_used(
    client: TestClient, place: Place
) -> None:
    first = client.get("/v1/admin/index", headers=ADMIN).json()
    (place.pages / "broken.md").write_text("no front matter")
    assert "broken.md" in client.post("/v1/admin/reload", headers=ADMIN).json()["problem"]
    assert "broken.md" in client.get("/readyz").json()["down"]["reload"]
    (place.pages / "broken.md").unlink()
    place.write(1)
    second = client.post("/v1/admin/reload", headers=ADMIN).json()
    assert second == client.get("/v1/admin/index", headers=ADMIN).json()
    assert (second["problem"], second["in_use"] == first["in_use"]) == (None, False)
    answer = client.post("/v1/ask", json={"question": QUESTION}).json()
    assert answer["causes"][0]["title"] == "Edition 1 of the frobnicated loss"
    assert answer["kb_version"] == second["kb_version"]
