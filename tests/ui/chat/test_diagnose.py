"""The question page's events without a browser: the order of what it shows, its failures, its files."""

from __future__ import annotations

import asyncio
import gzip
import logging
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from tests.every_case import every_case
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.access.audit_log import AuditLog
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.principals import Principal
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import StepView
from trainmedic.service.answering import Answerer, Delta, Draft, Executor, Parts, TemplateAnswerer, run_inline
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Rate, Settings
from trainmedic.service.storage.database import open_database
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.chat.texts import examples, words
from trainmedic.ui.context import AppContext

pytest.importorskip("gradio", reason="the pages need the extra 'serve'")

from gradio import queueing, route_utils, routes, skip, utils

from trainmedic.ui.chat.diagnose import DiagnosePage
from trainmedic.ui.chat.pages import mask_tracebacks
from trainmedic.ui.chat.session import Session
from trainmedic.ui.chat.uploads import read_uploads
from trainmedic.ui.chat.waiting import Recogniser, recognise

T = TypeVar("T")
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
KTO = examples("en")[0]


class Scripted:
    """Answers as it is told: the advisor's draft, then what ``script`` yields, then the advisor's answer."""

    def __init__(self, advisor: Advisor, script: Callable[[], AsyncIterator[Any]]) -> None:
        self._advisor = advisor
        self._script = script
        self.closed = False

    async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """See the class."""
        try:
            prepared = await run(lambda: self._advisor.prepare(request, trace_id))
            yield Draft(answer=assemble(prepared), sources=prepared.context.evidence.sources)
            async for part in self._script():
                yield part
            yield assemble(prepared)
        finally:
            self.closed = True


class Failing:
    """Answers nothing but an error."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """See the class."""
        if self._error is not None:
            raise self._error
        yield Delta("lead", "")


def page_of(advisor: Advisor, answerer: Answerer, gate: Gate | None = None) -> DiagnosePage:
    context = AppContext(settings=Settings(), advisor=advisor, answerer=answerer, executor=run_inline, gate=gate)
    page = DiagnosePage(context, "en")

    async def build() -> None:  # within a loop, else the framework makes one and leaves it open
        page.build()

    asyncio.run(build())
    return page


def run(page: DiagnosePage, session: Session, question: str, *files: Attachment) -> list[dict[str, Any]]:
    """Everything that the page's widgets are given, by the widgets' ids."""

    async def collected() -> list[dict[str, Any]]:
        return [
            {widget.elem_id: value for widget, value in changes.items() if getattr(widget, "elem_id", None)}
            async for changes in page._asked(question, files, session)
        ]

    return asyncio.run(collected())


def test_the_question_stands_at_once_then_the_evidence_then_the_text(advisor: Advisor) -> None:
    session = Session()
    shown = run(page_of(advisor, TemplateAnswerer(advisor)), session, KTO.question, *KTO.files)
    first, second, *rest, last = shown
    assert "tm-ev-main" not in first
    assert "--vanilla_loss" in second["tm-ev-main"]
    assert "bot" not in second
    assert any("tm-after-box" in changes for changes in rest)
    assert all("tm-ev-main" not in changes for changes in rest)
    assert last["tm-ev-main"] == second["tm-ev-main"]
    assert {"bot", "tm-after-box", "tm-ev-tail", "tm-hello-box", "tm-question"} <= set(last)
    assert [message["role"] for message in session.messages] == ["user", "assistant"]


def test_a_conversation_goes_on_after_the_server_has_forgotten_the_tab(knowledge_advisor: Advisor) -> None:
    history = History("sqlite://")
    advisor = Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history))
    page, before = page_of(advisor, TemplateAnswerer(advisor)), Session()
    run(page, before, KTO.question, *KTO.files)
    first = history.turns(str(before.conversation))[-1].answer_id

    async def ask(session: Session, on_page: str) -> None:
        async for _ in page.submitted({"text": "what about openrlhf 0.4.0?", "files": []}, session, on_page):
            pass

    after, stranger = Session(), Session()
    asyncio.run(ask(after, first))
    asyncio.run(ask(stranger, "no-such-answer"))
    assert after.conversation == before.conversation
    assert [message["content"] for message in after.messages[:2]] == [m["content"] for m in before.messages]
    assert len(after.messages) == 4
    assert "0.4.0" in after.messages[3]["content"]
    assert "vanilla_loss" in after.messages[3]["content"]
    assert (len(stranger.messages), stranger.conversation == before.conversation) == (2, False)
    another = Session()  # who goes on from the same link does not see the first one's question
    asyncio.run(ask(another, first))
    assert len(another.messages) == 4
    assert [turn.question for turn in history.turns(str(after.conversation))].count("what about openrlhf 0.4.0?") == 1
    history.close()


def test_the_steps_of_an_investigation_are_shown_as_they_come(advisor: Advisor) -> None:
    async def script() -> AsyncIterator[Any]:
        for number in (1, 2):
            yield StepView(number=number, tool="what_if", what=f"Step {number}", arguments={"a": "<b>"}, result="r")

    shown = run(page_of(advisor, Scripted(advisor, script)), Session(), KTO.question, *KTO.files)
    steps = [changes["tm-ev-steps"] for changes in shown if "Step 1" in str(changes.get("tm-ev-steps", ""))]
    assert ["Step 2" in html for html in steps] == [False, True, True]
    assert "&lt;b&gt;" in steps[0]


def test_an_unexpected_error_is_logged_without_its_message_and_none_of_it_is_shown(
    advisor: Advisor, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session()
    with caplog.at_level(logging.ERROR):
        shown = run(page_of(advisor, Failing(RuntimeError(f"boom {TOKEN}"))), session, "loss is nan")
    text = session.messages[-1]["content"]
    assert shown[-1]["tm-question"].interactive is True
    assert words("en")["failed_unexpected"] in text
    assert "boom" not in text
    assert "RuntimeError" in caplog.text
    assert "boom" not in caplog.text
    trace = caplog.text.split("trace ")[1].split()[0]
    assert trace in text
    run(page_of(advisor, Failing(InvalidRequest("the log is too long", hint="send its end"))), session, "loss is nan")
    assert "the log is too long" in session.messages[-1]["content"]
    assert "send its end" in session.messages[-1]["content"]


def test_the_reader_who_asked_deletes_the_conversation_and_nobody_else(knowledge_advisor: Advisor) -> None:
    history = History("sqlite://")
    advisor = Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history))
    page, session = page_of(advisor, TemplateAnswerer(advisor)), Session()
    run(page, session, KTO.question, *KTO.files)
    other = advisor.ask(Ask(question="loss is nan", owner="key:another"))

    def delete(answer_id: str) -> str:
        changes = asyncio.run(page.forgotten(session, SimpleNamespace(answer=answer_id)))
        return " ".join(str(getattr(value, "value", value)) for value in changes.values())

    assert words("en")["delete_not_yours"] in delete(other.id)
    assert words("en")["deleted"] in delete(session.answer_id)
    assert words("en")["delete_gone"] in delete(session.answer_id)
    assert history.conversations("") == ()
    assert len(history.conversations("key:another")) == 1


def test_whoever_brings_an_answer_back_to_a_page_or_votes_on_it_is_in_the_audit_log(advisor: Advisor) -> None:
    journal = AuditLog(open_database("sqlite://"))
    page = page_of(advisor, TemplateAnswerer(advisor), Gate(Settings(), audit_log=journal))
    answer = advisor.ask(Ask(question="loss is nan", owner="key:1"))
    alice = Principal(id="key:1", name="alice", scope="ask")
    scope = {"client": ("10.0.0.1", 1), "headers": [], "state": {"principal": alice}}
    request: Any = SimpleNamespace(request=SimpleNamespace(scope=scope), query_params={"answer": answer.id})
    vote: Any = SimpleNamespace(reaction="up", reason="", answer=answer.id)
    asyncio.run(page.opened(Session(), request))
    asyncio.run(page.voted(Session(), answer.id, vote, request))
    assert [(item.entry.name, item.entry.action, item.entry.target) for item in journal.entries()] == [
        ("alice", "read an answer on the page", answer.id),
        ("alice", "read an answer on the page", answer.id),
        ("alice", "feedback on the page", answer.id),
    ]


def test_who_did_not_ask_does_not_vote(advisor: Advisor) -> None:
    page = page_of(advisor, TemplateAnswerer(advisor))
    other = advisor.ask(Ask(question="loss is nan", owner="key:another"))
    vote: Any = SimpleNamespace(reaction="down", reason="", answer=other.id)
    changes = asyncio.run(page.voted(Session(), None, vote))
    assert words("en")["vote_not_yours"] in " ".join(map(str, changes.values()))
    assert advisor.memory.history is not None
    assert advisor.memory.history.feedback(other.id) is None


@every_case(
    ("browser", "address", "conversation", "allowed"),
    [
        ("browser:a", "10.0.0.1", "browser:a", True),
        ("browser:b", "127.0.0.1", "browser:a", False),
        ("browser:b", "10.0.0.1", "", False),
        ("browser:b", "127.0.0.1", "", True),
        ("", "10.0.0.1", "browser:a", False),
    ],
)
def test_without_keys_the_browser_that_asked_deletes(
    browser: str, address: str, conversation: str, allowed: bool, advisor: Advisor
) -> None:
    page = page_of(advisor, TemplateAnswerer(advisor))
    answer = advisor.ask(Ask(question="loss is nan", owner=conversation))
    scope = {"client": (address, 1), "headers": [], "state": {"owner": browser}}
    request: Any = SimpleNamespace(request=SimpleNamespace(scope=scope))
    event: Any = SimpleNamespace(answer=answer.id)
    changes = asyncio.run(page.forgotten(Session(), event, request))
    assert (words("en")["delete_not_yours"] in " ".join(map(str, changes.values()))) != allowed
    assert (advisor.memory.answer(answer.id) is None) == allowed


def test_the_frameworks_tracebacks_hold_nothing_of_what_exceptions_say(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    mask_tracebacks()
    for module in (queueing, route_utils, routes, utils):
        try:
            raise ValueError(TOKEN)
        except ValueError:
            module.traceback.print_exc()
    assert len(caplog.records) == 4
    assert TOKEN not in caplog.text + capsys.readouterr().err


def test_an_upload_is_read_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "a1b2"
    folder.mkdir()
    (folder / "train.log").write_bytes(b"{'loss': nan, 'epoch': 0.1}\n")
    seen = recognise(str(folder / "train.log"), parse)
    assert seen is not None
    assert (seen.name, seen.kind, seen.lines) == ("train.log", "log", 1)
    (file,) = read_uploads([str(folder / "train.log")])
    assert (file.name, file.content) == ("train.log", b"{'loss': nan, 'epoch': 0.1}\n")
    assert list(tmp_path.iterdir()) == []
    assert recognise(str(folder / "train.log"), parse) is None
    assert read_uploads([str(folder / "train.log")]) == ()


def test_a_waiting_file_is_read_once_by_the_bounded_reader_and_counts_as_a_question(
    advisor: Advisor, tmp_path: Path
) -> None:
    read: list[str] = []

    def reader(text: str, attachments: Sequence[Attachment]) -> Evidence:
        read.extend(file.name for file in attachments)
        return parse(text, attachments)

    bounded = Advisor(advisor.knowledge, read=reader)
    settings = Settings(require_key=True, rate=Rate(limit_ask="2/hour"))
    page = page_of(bounded, TemplateAnswerer(bounded), Gate(settings))
    paths = [tmp_path / f"{number}.log" for number in range(4)]
    for path in paths:
        path.write_text("{'loss': 0.5}\n", encoding="utf-8")
    alice = Principal(id="key:1", name="alice", scope="ask")
    scope = {"client": ("10.0.0.1", 1), "headers": [], "state": {"principal": alice, "owner": alice.id}}
    request: Any = SimpleNamespace(request=SimpleNamespace(scope=scope))

    def chips(*given: Path) -> str:
        value = {"text": "", "files": list(map(str, given))}
        return str(asyncio.run(page.received(value, Session(), request)))

    for _ in range(3):
        assert "1.log" in chips(*paths[:2])
    assert read == ["0.log", "1.log"], "a change event repeats all files, and other tabs may name them"
    assert "2.log" in chips(*paths[:3])
    assert "3.log" not in chips(*paths), "two questions an hour"
    assert read == ["0.log", "1.log", "2.log"]


def test_no_file_is_begun_after_the_deadline(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.log") for number in range(3)]
    for path in paths:
        Path(path).write_text("loss nan\n", encoding="utf-8")
    recogniser = Recogniser(lambda: parse)
    assert asyncio.run(recogniser.recognised(paths, run_inline, -1)) == []
    assert [file.index for file in asyncio.run(recogniser.recognised(paths, run_inline, 60))] == [0, 1, 2]
    Path(paths[1]).unlink()
    assert [file.index for file in asyncio.run(recogniser.recognised(paths, run_inline, -1))] == [0, 2]


def test_a_large_file_is_recognised_by_its_beginning_and_counted_whole(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("{'loss': 0.5, 'grad_norm': 1.0}\n" * 60_000, encoding="utf-8")
    seen = recognise(str(path), parse)
    assert seen is not None
    assert (seen.kind, seen.lines) == ("log", 60_000)


def test_of_a_compressed_file_only_the_beginning_is_unpacked(tmp_path: Path) -> None:
    few, many = tmp_path / "few.log.gz", tmp_path / "many.log.gz"
    few.write_bytes(gzip.compress(b"{'loss': 0.5, 'grad_norm': 1.0}\n" * 60))
    many.write_bytes(gzip.compress(b"{'loss': 0.5, 'grad_norm': 1.0}\n" * 60_000))
    seen = [recognise(str(path), parse) for path in (few, many)]
    assert [(file.kind, file.lines, file.read) for file in seen if file] == [("log", 60, True), ("log", None, True)]


def test_a_waiting_picture_or_archive_is_named_without_being_opened(tmp_path: Path) -> None:
    def never(question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        raise AssertionError

    shot, logs = tmp_path / "shot.png", tmp_path / "logs.zip"
    shot.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(300_000))
    with zipfile.ZipFile(logs, "w") as archive:
        archive.writestr("train.log", "loss nan\n")
    seen = [recognise(str(path), never) for path in (shot, logs)]
    assert [(file.kind, file.lines) for file in seen if file is not None] == [("picture", None), ("archive", None)]


def test_a_removed_file_does_not_come_back_when_an_earlier_change_is_answered_late(
    advisor: Advisor, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("a.log", "b.log")]
    for path in paths:
        path.write_text("{'loss': 0.5}\n", encoding="utf-8")
    value = {"text": "why?", "files": list(map(str, paths))}

    async def crossed() -> tuple[dict[Any, Any], Any]:
        held = [asyncio.Event()]

        async def executor(call: Callable[[], T]) -> T:
            result = call()
            if held:
                await held.pop().wait()
            return result

        page, session, released = page_of_running(executor), Session(), held[0]
        early = asyncio.create_task(page.received(value, session))
        await asyncio.sleep(0)
        removed = await page.dropped(value, session, SimpleNamespace(index=0))
        released.set()
        return removed, await early

    def page_of_running(executor: Executor) -> DiagnosePage:
        context = AppContext(
            settings=Settings(), advisor=advisor, answerer=TemplateAnswerer(advisor), executor=executor
        )
        page = DiagnosePage(context, "en")
        page.build()
        return page

    removed, early = asyncio.run(crossed())
    chips = next(value for widget, value in removed.items() if widget.elem_id == "tm-chips-box")
    assert "b.log" in chips
    assert "a.log" not in chips
    assert early == skip()
