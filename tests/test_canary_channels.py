"""A secret that is pasted goes nowhere through any channel: the pages, MCP, Slack, a watch, the model."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from tests.fake_model import FakeModel, Reply, diagnosis, hypothesis
from tests.openai_app import openai_app
from tests.scripted import Scripted, sends
from tests.slack.bots import bot_in
from tests.slack.fake import LocalSlack
from tests.slack.fake.fixtures import own_slack, strict
from tests.test_canary import FEW, RULE, SECRETS, assert_clean, everywhere
from trainmedic.kb.identities import identities_of, masked_values
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, final_answer, run_inline
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, ModelOptions
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import OURS, History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.cli import main
from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from trainmedic.ui.chat.diagnose import DiagnosePage

__all__ = ["own_slack", "strict"]
SLOWER = ("huggingface_token", "private_key")
"""Kinds for the channels that take longer."""
QUESTION = "kto loss is nan, {} is my key"


@pytest.fixture(scope="module")
def kept(knowledge_advisor: Advisor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Advisor]:
    """An advisor with a history."""
    history = History(f"sqlite:///{tmp_path_factory.mktemp('history') / 'history.sqlite3'}")
    yield Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history))
    history.close()


@pytest.fixture(scope="module")
def client(kept: Advisor) -> Iterator[TestClient]:
    with TestClient(openai_app(kept, Settings())) as client:
        yield client


@pytest.fixture(scope="module")
def context(kept: Advisor) -> AppContext:
    return AppContext(settings=Settings(), advisor=kept, answerer=TemplateAnswerer(kept), executor=run_inline)


def taken(handler: BaseHTTPRequestHandler) -> None:
    """As Slack answers; a service that is asked is away."""
    sends(503 if "/v1/" in handler.path else 200, '{"ok": true, "ts": "1.000001"}')(handler)


@pytest.fixture
def receiver() -> Iterator[Scripted]:
    with Scripted(taken) as receiver:
        yield receiver


def told_to(receiver: Scripted) -> list[str]:
    """What it was sent, without escapes."""
    return [body if body.isascii() else json.dumps(json.loads(body), ensure_ascii=False) for body in receiver.posted]


@pytest.mark.parametrize("kind", FEW[:6])
def test_an_answer_that_is_fetched_again_does_not_hold_the_secret(client: TestClient, kind: str) -> None:
    secret = SECRETS[kind]
    files = [{"name": a.name, "content": a.content} for a in everywhere(secret) if isinstance(a.content, str)]
    asked = client.post("/v1/ask", json={"question": QUESTION.format(secret), "attachments": files})
    assert RULE in asked.text
    again = client.get(f"/v1/answers/{asked.json()['id']}")
    # Kept without the names of machines too, which some of these secrets stand beside.
    known = identities_of((QUESTION.format(secret), *(file["content"] for file in files)))
    assert again.json() == masked_values(asked.json(), known, OURS)
    assert_clean(again.text, secret)
    said = [{"role": "user", "content": f"{QUESTION.format(secret)}\n{files[0]['content']}"}]
    for stream in (False, True):
        sent = client.post("/v1/chat/completions", json={"model": "trainmedic", "messages": said, "stream": stream})
        assert sent.status_code == 200
        assert_clean(sent.text, secret)


@pytest.fixture(scope="module")
def page(context: AppContext) -> DiagnosePage:
    pytest.importorskip("gradio", reason="the pages need the extra 'serve'")
    from trainmedic.ui.chat.diagnose import DiagnosePage

    page = DiagnosePage(context, "en")

    async def build() -> None:
        page.build()

    asyncio.run(build())  # outside a loop, gradio makes one and leaves it open
    return page


@pytest.mark.parametrize("kind", FEW[:6])
def test_nothing_that_a_page_shows_or_keeps_holds_the_secret(page: DiagnosePage, kind: str) -> None:
    from trainmedic.ui.chat.session import Session

    secret = SECRETS[kind]
    session = Session()

    async def shown() -> list[dict[str, Any]]:
        found = [
            {widget.elem_id: widget_text(value) for widget, value in changes.items() if widget.elem_id}
            async for changes in page._asked(QUESTION.format(secret), everywhere(secret), session)
        ]
        link = re.search(r'data-answer="(\w+)"', str(found[-1]))
        assert link is not None
        again = await page._recalled(link[1], Session(), page._sender(None))
        return [*found, {widget.elem_id: widget_text(value) for widget, value in again.items() if widget.elem_id}]

    text = str(asyncio.run(shown()))
    assert "vanilla_loss" in text
    assert_clean(text, secret)
    assert_clean(str(session), secret)


def widget_text(value: object) -> str:
    """What a widget is given, as text."""
    return str(getattr(value, "value", value))


@pytest.mark.parametrize("kind", FEW[:6])
def test_nothing_that_mcp_answers_holds_the_secret(context: AppContext, kind: str) -> None:
    mcp = pytest.importorskip("mcp", reason="MCP needs the extra 'mcp'")
    from trainmedic.ui.mcp.server import make_server

    secret = SECRETS[kind]
    files = [{"name": a.name, "content": a.content} for a in everywhere(secret) if isinstance(a.content, str)]
    calls = {
        "diagnose": {"question": QUESTION.format(secret), "attachments": files},
        "check_config": {"attachments": files},
        "search_cases": {"query": f"{secret} loss nan"},
        "get_case": {"case_id": secret},
        "explain_rule": {"rule_id": secret},
        secret[:60]: {},
    }

    async def use() -> list[str]:
        found = []
        async with mcp.Client(make_server(context)) as client:
            for name, arguments in calls.items():
                try:
                    found.append((await client.call_tool(name, arguments)).model_dump_json())
                except mcp.MCPError as error:
                    found.append(str(error))
        return found

    answers = asyncio.run(use())
    assert RULE in answers[1]
    for answer in answers[:-1]:
        assert_clean(answer.encode().decode("unicode_escape", "replace") + answer, secret)


@pytest.mark.parametrize("kind", SLOWER)
def test_nothing_that_is_told_to_slack_holds_the_secret(
    kept: Advisor, strict: LocalSlack, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "trainmedic")
    secret = SECRETS[kind]
    texts = [a for a in everywhere(secret)[:3] if isinstance(a.content, str)]

    async def act() -> None:
        async with bot_in(strict, kept, tmp_path) as bot:
            files = [strict.upload(a.name, a.content) for a in texts]
            said = strict.says(f"<@U0BOT> {QUESTION.format(secret)}", files=files)
            await strict.until_said("Cause found", thread_ts=said.ts)
            while bot.handler.tasks.running:
                await asyncio.sleep(0.01)

    asyncio.run(act())
    sent = [json.dumps(dict(call.args), ensure_ascii=False, default=str) for call in strict.calls()]
    assert any("vanilla" in each for each in sent)
    assert_clean("\n".join(sent), secret)
    assert_clean("\n".join(record.getMessage() for record in caplog.records), secret)


@pytest.mark.parametrize("kind", SLOWER)
def test_nobody_who_is_told_of_a_watched_run_sees_the_secret(
    knowledge_loaded: None,
    knowledge_folder: Path,
    receiver: Scripted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    secret = SECRETS[kind]
    one_line = " ".join(secret.split("\n"))
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(knowledge_folder))
    script, log = tmp_path / "train.sh", tmp_path / f"{one_line[:100].replace('/', '_')}.log"
    script.write_text(str(everywhere(secret)[0].content), encoding="utf-8")
    log.write_text(f"key {one_line}\n{{'loss': nan, 'step': 3}}\nValueError: {one_line}\n", encoding="utf-8")
    told = ["--webhook", receiver.url, "--server", receiver.url]
    assert main(["watch", str(log), "--config", str(script), "--once", "--language", "en", *told]) == 0
    shown = capsys.readouterr()
    assert "a loss is NaN" in shown.err
    assert any('"diagnosed"' in each for each in told_to(receiver))
    assert any('"attachments"' in each for each in told_to(receiver))
    assert_clean(shown.out + shown.err, secret)
    assert_clean("\n".join(told_to(receiver)), secret)


@pytest.mark.parametrize("mode", ["auto", "investigate"])
@pytest.mark.parametrize("kind", SLOWER)
def test_no_prompt_holds_the_secret(kept: Advisor, kind: str, mode: Any) -> None:
    secret = SECRETS[kind]
    files = tuple(a for a in everywhere(secret) if isinstance(a, Attachment))

    async def asked() -> list[str]:
        with FakeModel(Reply("enough"), forms=[diagnosis(hypothesis())]) as fake:
            model = ChatModel(ModelOptions(base_url=fake.url, timeout_s=20.0, first_token_s=20.0))
            try:
                assistant = Assistant(kept, model)
                first = Ask(question=QUESTION.format(secret), attachments=files, mode=mode)
                answer = await final_answer(assistant.stream(first, "", run_inline))
                again = Ask(question=f"and {secret}?", conversation_id=answer.conversation_id, mode=mode)
                await final_answer(assistant.stream(again, "", run_inline))
            finally:
                await model.aclose()
            return [json.dumps(dict(each.body), ensure_ascii=False) for each in fake.requests]

    prompts = asyncio.run(asked())
    assert any("vanilla_loss" in each for each in prompts)
    assert_clean("\n".join(prompts), secret)
