"""Text that takes too long, or too much memory, to read costs its own request and no other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from anyio.from_thread import start_blocking_portal
from fastapi.testclient import TestClient

from tests.service.hostile_reader import GIBIBYTE, hostile
from trainmedic.kb.errors import TooLarge
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.question.reading import ReadingPool, ReadingTimeout
from trainmedic.service.settings import Settings

LOG = Attachment(name="train.log", content="".join(f"{{'loss': {1 + n / 9}, 'grad_norm': 0.5}}\n" for n in range(99)))


@pytest.fixture(scope="module")
def pool() -> Iterator[ReadingPool]:
    reading = ReadingPool(2, 1.0, 2 * GIBIBYTE, hostile)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(reading.running()):
        yield reading


def test_a_process_reads_what_the_service_would(pool: ReadingPool) -> None:
    question = "trl 0.9: loss is nan\n\npython train.py --lr 1e-5"
    assert pool.read(question, [LOG]) == parse(question, [LOG])


def test_a_text_that_takes_too_long_is_given_up_while_others_are_read(pool: ReadingPool) -> None:
    with ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(pool.read, "hang")
        others = [pool.read("loss is nan").question for _ in range(20)]
        assert not stuck.done()
        with pytest.raises(ReadingTimeout, match="within 1 s"):
            stuck.result()
    assert set(others) == {"loss is nan"}


def test_the_killed_are_replaced(pool: ReadingPool) -> None:
    with ThreadPoolExecutor(2) as threads:
        assert all(
            isinstance(one.exception(), ReadingTimeout) for one in [threads.submit(pool.read, "hang") for _ in range(2)]
        )
    assert pool.read("loss is nan").question == "loss is nan"


@pytest.mark.parametrize("question", ["swallow", "die"])
def test_a_text_that_ends_its_process_is_refused(pool: ReadingPool, question: str) -> None:
    with pytest.raises(TooLarge, match="memory for one request"):
        pool.read(question)
    assert pool.read("loss is nan").question == "loss is nan"


def test_without_processes_and_before_the_start_the_caller_reads() -> None:
    assert ReadingPool(2, 1.0, GIBIBYTE).read("loss is nan") == parse("loss is nan")
    none = ReadingPool(0, 1.0, GIBIBYTE)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(none.running()):
        assert none.read("loss is nan") == parse("loss is nan")


def test_the_service_answers_504_and_goes_on_with_other_requests(knowledge_advisor: Advisor) -> None:
    reading = ReadingPool(2, 1.0, 2 * GIBIBYTE, hostile)
    advisor = Advisor(knowledge_advisor.knowledge, read=reading.read)
    app = create_app(advisor, Settings(), background=[reading.running])
    with TestClient(app) as client, ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(client.post, "/v1/ask", json={"question": "hang"})
        time.sleep(0.2)
        answered = client.post("/v1/ask", json={"question": "loss is nan with bf16"})
        assert not stuck.done()
        refused = stuck.result()
    assert answered.status_code == 200
    assert refused.status_code == 504
    assert refused.json()["error"]["code"] == "reading_timeout"
