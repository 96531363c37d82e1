"""Text that takes too long, or too much memory, to read costs its own request and no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from anyio.from_thread import start_blocking_portal
from fastapi.testclient import TestClient

from tests.confined_work import REACHED
from tests.service.hostile_reader import GIBIBYTE, hostile
from trainmedic.kb.errors import TooLarge
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.reading import ReadingPool, ReadingTimeout, ReadOnce
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.chat.texts import examples

BOUND_S = 2.0
"""Of one reading, long enough for a busy machine."""
KTO = examples("en")[0]
LOG = Attachment(name="train.log", content="".join(f"{{'loss': {1 + n / 9}, 'grad_norm': 0.5}}\n" for n in range(99)))


@pytest.fixture(scope="module")
def pool() -> Iterator[ReadingPool]:
    reading = ReadingPool(2, BOUND_S, 2 * GIBIBYTE, hostile)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(reading.running()):
        yield reading


def test_a_process_reads_what_the_service_would(pool: ReadingPool) -> None:
    question = "trl 0.9: loss is nan\n\npython train.py --lr 1e-5"
    assert pool.read(question, [LOG]) == parse(question, [LOG])


def test_a_text_that_takes_too_long_is_given_up_while_others_are_read(pool: ReadingPool) -> None:
    with ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(pool.read, "hang")
        others = [pool.read("loss is nan").question for _ in range(5)]
        assert not stuck.done()
        with pytest.raises(ReadingTimeout, match=f"within {BOUND_S:g} s"):
            stuck.result()
    assert set(others) == {"loss is nan"}


def test_the_killed_are_replaced(pool: ReadingPool) -> None:
    with ThreadPoolExecutor(2) as threads:
        assert all(
            isinstance(one.exception(), ReadingTimeout) for one in [threads.submit(pool.read, "hang") for _ in range(2)]
        )
    assert pool.read("loss is nan").question == "loss is nan"


@pytest.mark.parametrize("question", ["swallow", "die", "take over"])
def test_a_text_that_ends_its_process_is_refused(pool: ReadingPool, question: str) -> None:
    with pytest.raises(TooLarge, match="memory for one request"):
        pool.read(question)
    assert REACHED == []
    assert pool.read("loss is nan").question == "loss is nan"


def test_without_processes_and_before_the_start_the_caller_reads() -> None:
    assert ReadingPool(2, 1.0, GIBIBYTE).read("loss is nan") == parse("loss is nan")
    none = ReadingPool(0, 1.0, GIBIBYTE)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(none.running()):
        assert none.read("loss is nan") == parse("loss is nan")


RUN = """deepspeed --module openrlhf.cli.train_kto --pretrain Qwen/Qwen2.5-7B-Instruct --zero_stage 3 --bf16
"""


def test_a_supposed_change_is_read_within_the_same_bounds(knowledge_advisor: Advisor) -> None:
    reading = ReadingPool(1, 1.0, 2 * GIBIBYTE, hostile)
    app = create_app(Advisor(knowledge_advisor.knowledge, reading.read), Settings(), background=[reading.running])
    files = [{"name": "run.sh", "content": RUN}]
    with TestClient(app) as client:
        refused = client.post("/v1/ask", json={"question": "what if zero_stage is 2?", "attachments": files})
    assert refused.status_code == 504
    assert refused.json()["error"]["code"] == "reading_timeout"


class Counting:
    """A reader in this process that knows what it read."""

    def __init__(self) -> None:
        self.read: list[tuple[str, tuple[Attachment, ...]]] = []

    def __call__(self, question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        self.read.append((question, tuple(attachments)))
        return parse(question, attachments)


CONVERSATION = (
    (KTO.question, tuple(Attachment(name=file.name, content=str(file.content)) for file in KTO.files)),
    ("I removed --vanilla_loss and upgraded to 0.3.5, still nan", ()),
    ("what if micro batch is 2?", ()),
    ("still nan after I switched to zero stage 2", (LOG,)),
)


def answers(advisor: Advisor) -> list[str]:
    asked = [Ask(question=text, attachments=files, conversation_id="c") for text, files in CONVERSATION]
    return [advisor.ask(request).answer for request in asked]


def test_a_conversation_is_read_by_the_reader_given_and_each_text_once(knowledge_advisor: Advisor) -> None:
    knowledge = knowledge_advisor.knowledge
    always, once = Counting(), Counting()
    plain = answers(Advisor(knowledge, always, Memory(History("sqlite://"))))
    assert answers(Advisor(knowledge, ReadOnce(once), Memory(History("sqlite://")))) == plain
    assert len(once.read) == len(set(once.read)) == len(set(always.read))
    assert len(once.read) < len(always.read) / 2
    texts = ["".join((question, *(str(file.content) for file in files))) for question, files in once.read]
    assert any("micro_train_batch_size 2" in text for text in texts), "what is supposed"
    assert any(text == CONVERSATION[1][0] for text in texts), "what is reported"


def test_the_oldest_readings_are_forgotten_and_failures_are_not_kept() -> None:
    reader = Counting()
    once = ReadOnce(reader, characters=100, least=40)
    for question in ("a", "b", "a", "c", "a", "b", "x" * 200, "x" * 200):
        once(question)
    assert [question[:1] for question, _ in reader.read] == ["a", "b", "c", "b", "x", "x"]
    assert once("a", [Attachment(name="f", content="b")]) != once("a", [Attachment(name="f", content="c")])

    def failing(question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        reader(question)
        raise TooLarge("too large")

    refusing = ReadOnce(failing)
    for _ in range(2):
        with pytest.raises(TooLarge):
            refusing("d")
    assert [question for question, _ in reader.read].count("d") == 2


def test_the_service_answers_504_and_goes_on_with_other_requests(knowledge_advisor: Advisor) -> None:
    reading = ReadingPool(2, BOUND_S, 2 * GIBIBYTE, hostile)
    advisor = Advisor(knowledge_advisor.knowledge, reading.read)
    app = create_app(advisor, Settings(), background=[reading.running])
    with TestClient(app) as client, ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(client.post, "/v1/ask", json={"question": "hang"})
        answered = client.post("/v1/ask", json={"question": "loss is nan with bf16"})
        refused = stuck.result()
    assert answered.status_code == 200
    assert refused.status_code == 504
    assert refused.json()["error"]["code"] == "reading_timeout"
