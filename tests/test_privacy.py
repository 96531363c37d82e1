"""Who a user is and where their machines are stays with the user; what they delete is gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.fake_model import FakeModel, Reply, diagnosis, hypothesis
from tests.incidents import KTO_SINGLE
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.serialization import to_json
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import final_answer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, ModelOptions
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import Feedback, History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.watch.alarm import Alarm
from trainmedic.ui.watch.notify import for_others
from trainmedic.ui.watch.watcher import Diagnosis

NAMES = ("alicia", "node-17", "gpu-cluster", "10.77.31", "quokkacorp")
SCRIPT = (
    "(base) alicia@node-17:/data$ bash train.sh\nexport MASTER_ADDR=node-17.gpu-cluster.quokkacorp.com\n"
    + KTO_SINGLE.replace("--vanilla_loss", "--vanilla_loss \\\n   --save_path /home/alicia/checkpoint")
)
LOG = (
    "node-17:4321:4388 [0] NCCL INFO Bootstrap : Using eth0:10.77.31.5<0>\n"
    "{'loss': nan, 'step': 3} /scratch/alicia/x http://wiki.quokkacorp.com/x\n"
)
FILES = (Attachment(name="train.sh", content=SCRIPT), Attachment(name="run.log", content=LOG))
QUESTION = "kto loss is nan, see /home/alicia/run"
WORD = "zxquokkazx"
"""In every text that is to be deleted, and nowhere else."""


def assert_nobody(shown: str) -> None:
    assert [name for name in NAMES if name in shown] == []


@pytest.fixture
def kept(knowledge_advisor: Advisor, tmp_path: Path) -> Iterator[Advisor]:
    """An advisor whose history is a file."""
    history = History(f"sqlite:///{tmp_path / 'history.sqlite3'}")
    yield Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history))
    history.close()


def stored_in(folder: Path) -> str:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("history.sqlite3*"))).decode("utf-8", "replace")


def test_the_user_sees_their_own_text_and_the_history_has_it_without_names(kept: Advisor, tmp_path: Path) -> None:
    answer = kept.ask(Ask(question=QUESTION, attachments=FILES))
    assert answer.verdict == "answered"
    assert "/home/alicia/checkpoint" in to_json(answer)
    kept.memory.give_feedback(Feedback(answer_id=answer.id, reaction="down", comment="not on node-17.quokkacorp.com"))
    stored = kept.memory.answer(answer.id)
    assert stored is not None
    shared = stored.answer
    assert_nobody(json.dumps(shared, ensure_ascii=False))
    assert_nobody(stored_in(tmp_path))
    # Every place is still where it was.
    for finding, copy in zip(answer.findings, shared["findings"], strict=True):
        assert [(span.line, span.column, len(span.text)) for span in finding.evidence] == [
            (span["line"], span["column"], len(span["text"])) for span in copy["evidence"]
        ]
    assert [citation["url"] for citation in shared["citations"]] == [citation.url for citation in answer.citations]


def test_a_follow_up_reads_the_masked_files_as_it_read_the_first_ones(kept: Advisor) -> None:
    answer = kept.ask(Ask(question=QUESTION, attachments=FILES))
    again = kept.ask(Ask(question="why is that?", conversation_id=answer.conversation_id))
    assert again.causes[0].case_id == answer.causes[0].case_id
    assert again.run.framework == answer.run.framework
    # "alicia@node-17" is in the first turn alone, and what it tells is masked in all of it.
    assert_nobody(to_json(again))


def test_an_answer_without_names_is_stored_as_it_was_given(kept: Advisor) -> None:
    files = (Attachment(name="train.sh", content=KTO_SINGLE), Attachment(name="a.txt", content="torch==2.4.0"))
    answer = kept.ask(Ask(question="kto loss is nan", attachments=files))
    stored = kept.memory.answer(answer.id)
    assert stored is not None
    assert stored.answer == json.loads(to_json(answer))


@pytest.mark.parametrize("mode", ["auto", "investigate"])
def test_no_model_is_told_who_or_where(kept: Advisor, mode: str) -> None:
    async def asked() -> list[str]:
        with FakeModel(Reply("enough"), forms=[diagnosis(hypothesis())]) as fake:
            model = ChatModel(ModelOptions(base_url=fake.url, timeout_s=20.0, first_token_s=20.0))
            try:
                assistant = Assistant(kept, model)
                request = Ask(question=QUESTION, attachments=FILES, mode="investigate" if mode != "auto" else "auto")
                await final_answer(assistant.stream(request, "", run_inline))
            finally:
                await model.aclose()
            return [json.dumps(dict(each.body), ensure_ascii=False) for each in fake.requests]

    prompts = asyncio.run(asked())
    assert any("vanilla_loss" in prompt for prompt in prompts)
    assert_nobody("\n".join(prompts))


def test_a_channel_is_told_of_a_run_without_names(kept: Advisor) -> None:
    answer = kept.ask(Ask(question=QUESTION, attachments=FILES))
    told = for_others(
        Diagnosis(alarm=Alarm(kinds=("loss_nan",), step=3, certain=True), answer=answer, name="/home/alicia/a.log")
    )
    assert_nobody(to_json(told.answer) + told.name)
    assert [cause.case_id for cause in told.answer.causes] == [cause.case_id for cause in answer.causes]


def test_nothing_of_a_deleted_conversation_is_left_in_the_files_of_the_database(kept: Advisor, tmp_path: Path) -> None:
    files = [{"name": f"{WORD}.sh", "content": f"# {WORD}\n{KTO_SINGLE}"}]
    with TestClient(create_app(kept, Settings()), client=("127.0.0.1", 1)) as client:
        asked = client.post("/v1/ask", json={"question": f"kto loss is nan {WORD}", "attachments": files}).json()
        ids = {"conversation_id": asked["conversation_id"]}
        client.post("/v1/ask", json={"question": f"and with {WORD}?", **ids})
        client.post("/v1/feedback", json={"answer_id": asked["id"], "reaction": "down", "comment": f"no {WORD}"})
        copy = kept.memory.branch(asked["id"], "somebody else")
        kept.ask(Ask(question=f"{WORD} again", conversation_id=copy, owner="somebody else"))
        other = client.post("/v1/ask", json={"question": "grad_norm is zero from step 1"}).json()
        assert stored_in(tmp_path).count(WORD) > 5
        assert client.delete(f"/v1/conversations/{asked['conversation_id']}").status_code == 204
        assert WORD not in stored_in(tmp_path)
        assert client.get(f"/v1/answers/{asked['id']}").status_code == 404
        assert client.get(f"/v1/answers/{other['id']}").status_code == 200
        assert WORD not in client.get("/metrics").text
    assert kept.memory.history is not None
    assert all(WORD not in each.question for each in kept.memory.history.unresolved())
