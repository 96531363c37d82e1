"""The MCP server as clients meet it: in process, as a command and over HTTP, in both revisions of the protocol."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from tests.every_case import every_case
from tests.incidents import INCIDENTS, KTO_SINGLE, Incident
from tests.live import Live
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import tree_of
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import StepView
from trainmedic.service.answering import Answerer, Delta, Draft, Executor, Parts, TemplateAnswerer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS, Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.context import AppContext
from trainmedic.ui.mcp.http import attach
from trainmedic.ui.mcp.server import MAX_CHARACTERS, MAX_QUESTION, make_server
from trainmedic.ui.present.page import MOST_BYTES

ROOT = Path(__file__).parent.parent.parent
SNAPSHOT = Path(__file__).with_name("test_mcp_tools.json")
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
TOOLS = [
    "diagnose",
    "check_config",
    "audit_packages",
    "diff",
    "explain_message",
    "search_cases",
    "get_case",
    "explain_rule",
    "source",
]
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
KEY = "correct-horse-battery-staple"
PROGRAM = "from trainmedic.ui.cli import main; raise SystemExit(main(['mcp']))"
RULE = "openrlhf-kto-vanilla-loss-single-class"
START_S = 180
"""Limit on a start of the command and its answers; 6 s on two free cores, several times that beside other tests."""


def context(advisor: Advisor, answerer: Answerer | None = None, **settings: Any) -> AppContext:
    return AppContext(
        settings=Settings.model_validate(settings),
        advisor=advisor,
        answerer=answerer or TemplateAnswerer(advisor),
        executor=run_inline,
    )


def in_process(advisor: Advisor, use: Callable[[Client], Awaitable[None]], mode: str = "auto") -> None:
    """``use`` a client of a server over ``advisor``."""

    async def go() -> None:
        async with Client(make_server(context(advisor)), mode=mode) as client:
            assert client.protocol_version == REVISIONS[mode]
            await use(client)

    asyncio.run(go())


def pasted(incident: Incident) -> list[dict[str, str]]:
    return [{"name": file.name, "content": str(file.content)} for file in incident.files]


def content(result: CallToolResult) -> dict[str, Any]:
    """What a tool returned; the text beside it says the same."""
    assert not result.is_error, result.content
    structured = result.structured_content
    assert isinstance(structured, dict)
    assert json.loads(said(result)) == structured
    return structured


def said(result: CallToolResult) -> str:
    (part,) = result.content
    assert part.type == "text"
    return part.text


def refused(result: CallToolResult) -> str:
    assert result.is_error
    return said(result)


both = pytest.mark.parametrize("mode", list(REVISIONS))


# --- the tools ------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("incident", INCIDENTS[:1], ids=lambda i: i.name)
def test_a_diagnosis_is_the_answer_of_every_other_channel(advisor: Advisor, incident: Incident, mode: str) -> None:
    expected = advisor.ask(Ask(question=incident.zh, attachments=incident.files))

    async def use(client: Client) -> None:
        result = await client.call_tool("diagnose", {"question": incident.zh, "attachments": pasted(incident)})
        got = content(result)
        assert (got["verdict"], got["language"]) == (incident.verdict, "zh")
        assert [each["id"] for each in got["causes"]] == [each.case_id for each in expected.causes][
            : len(got["causes"])
        ]
        name, line, _ = incident.place
        assert any(each.startswith(f"{name}:{line}: ") for each in got["causes"][0]["evidence"])
        assert len(json.dumps(got, ensure_ascii=False, separators=(",", ":")).encode()) <= MOST_BYTES

    in_process(advisor, use, mode)


def test_what_search_finds_can_be_read(advisor: Advisor) -> None:
    async def use(client: Client) -> None:
        sent = {"query": "KTO loss nan", "framework": "openrlhf", "top_k": 3, "language": "zh"}
        hits = content(await client.call_tool("search_cases", sent))["hits"]
        assert 1 <= len(hits) <= 3
        id = hits[0]["case_id"]
        case = content(await client.call_tool("get_case", {"case_id": id, "language": "zh"}))
        assert (case["id"], case["title"]) == (id, hits[0]["title"])
        rule = content(await client.call_tool("explain_rule", {"rule_id": RULE, "language": "zh"}))
        assert (rule["id"], rule["markdown"][:2]) == (RULE, "# ")

    in_process(advisor, use)


@both
def test_the_list_of_tools_is_the_one_that_clients_were_promised(advisor: Advisor, mode: str) -> None:
    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        for tool in tools:
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
            assert tool.annotations.destructive_hint is False
            assert tool.output_schema is not None
        shown = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        # After a change that is meant: delete the file, run the test twice, and look at the difference.
        if not SNAPSHOT.exists():
            SNAPSHOT.write_text(json.dumps(shown, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            pytest.fail("there was no snapshot; it was written now")
        assert shown == json.loads(SNAPSHOT.read_text(encoding="utf-8"))

    in_process(advisor, use, mode)


def test_source_is_read_at_the_release_that_is_named(advisor: Advisor, tmp_path: Path) -> None:
    sources = Sources(tmp_path, "off")
    sources.store.add(tree_of("trl", "0.16.0", "wheel", {"trl/__init__.py": b"LIMIT = 3\n"}))
    reading = Advisor(advisor.knowledge, advisor.read, source=Library(sources))

    async def use(client: Client) -> None:
        got = content(await client.call_tool("source", {"action": "read", "package": "trl", "symbol": "LIMIT"}))
        assert got["text"] == "trl 0.16.0 trl/__init__.py:1 LIMIT\n1: LIMIT = 3"
        assert got["places"] == [
            {"package": "trl", "version": "0.16.0", "path": "trl/__init__.py", "first": 1, "last": 1}
        ]
        for wrong in ({"action": "grep"}, {"action": "diff"}, {"action": "read", "lines": "1" * 21}):
            assert refused(await client.call_tool("source", {"package": "trl", **wrong})).startswith("invalid_request")
        missing = {"action": "read", "package": "trl", "version": "0.1.0", "symbol": "LIMIT"}
        assert "trainmedic kb sources fetch trl==0.1.0" in refused(await client.call_tool("source", missing))

    in_process(reading, use)


def test_two_runs_are_compared_and_a_curve_may_end_in_nan(advisor: Advisor) -> None:
    rows = [f"{{'loss': {2 - n / 20}, 'grad_norm': 1.0, 'step': {n}}}" for n in range(1, 20)]
    broken = [*rows[:9], *(f"{{'loss': nan, 'grad_norm': nan, 'step': {n}}}" for n in range(10, 20))]

    async def use(client: Client) -> None:
        sides = {
            "good": [{"name": "a.sh", "content": "--bf16"}, {"name": "a.log", "content": "\n".join(rows)}],
            "bad": [{"name": "b.sh", "content": "--fp16"}, {"name": "b.log", "content": "\n".join(broken)}],
        }
        got = content(await client.call_tool("diff", sides))
        assert [(curve["metric"], curve["step"], curve["bad"]) for curve in got["curves"]][:1] == [("loss", 10, "nan")]
        assert refused(await client.call_tool("diff", {**sides, "bad": []})).startswith("invalid_request")

    in_process(advisor, use)


def test_what_is_too_large_is_refused_before_it_is_read(advisor: Advisor) -> None:
    async def use(client: Client) -> None:
        many = [{"name": f"{n}", "content": ""} for n in range(MAX_ATTACHMENTS + 1)]
        long = [{"name": "a", "content": "x" * (MAX_CHARACTERS // 2)}] * 2
        for sent in ({"attachments": many}, {"attachments": long}):
            for tool in ("diagnose", "check_config"):
                assert refused(await client.call_tool(tool, sent)).startswith("too_large: ")
        assert refused(await client.call_tool("diagnose", {"question": "x" * (MAX_QUESTION + 1)})).startswith(
            "too_large"
        )

    in_process(advisor, use)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("check_config", {"attachments": [{"name": "a", "content": "b", "path": "/x"}]}, "invalid_request"),
        ("diagnose", {"question": "why", "files": [{"name": "a", "content": TOKEN}]}, "invalid_request"),
        ("diagnose", {"question": "why", TOKEN: "x"}, "invalid_request"),
        ("diagnose", {}, "invalid_request"),
        ("diagnose", {"question": 5}, "invalid_request"),
        ("diagnose", {"question": "q", "language": TOKEN}, "invalid_request"),
        ("diagnose", {"question": "q", "attachments": [{"name": "a", "content": {"k": TOKEN}}]}, "invalid_request"),
        ("diagnose", {"question": "q", "conversation_id": "a" * 65}, "invalid_request"),
        ("check_config", {}, "invalid_request"),
        ("check_config", {"attachments": []}, "invalid_request"),
        ("search_cases", {"query": " "}, "invalid_request"),
        ("search_cases", {"query": "nan", "top_k": 51}, "invalid_request"),
        ("get_case", {"case_id": TOKEN}, "not_found"),
        ("get_case", {"case_id": "../../etc/passwd"}, "not_found"),
        ("explain_rule", {"rule_id": "\ud800"}, "not_found"),
        ("nope", {}, "not_found"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_in_our_words_and_without_what_was_sent(
    advisor: Advisor, tool: str, arguments: dict[str, Any], code: str
) -> None:
    async def use(client: Client) -> None:
        text = refused(await client.call_tool(tool, arguments))
        assert text.startswith(f"{code}: ")
        assert TOKEN not in text
        assert "pydantic" not in text

    in_process(advisor, use)


def test_an_error_that_nobody_foresaw_is_told_to_the_operator_alone_and_without_its_message(
    advisor: Advisor, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(TemplateAnswerer):
        async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
            if request.question:
                raise RuntimeError(f"no such file: {request.question}")
            yield Delta("lead", "")

    async def go() -> None:
        async with Client(make_server(context(advisor, Broken(advisor)))) as client:
            text = refused(await client.call_tool("diagnose", {"question": f"use {TOKEN}"}))
            assert text == "internal: something went wrong on our side"

    with caplog.at_level(logging.DEBUG):
        asyncio.run(go())
    assert "RuntimeError" in caplog.text
    assert "no such file: use" not in caplog.text


def test_a_path_is_read_only_below_an_allowed_folder(advisor: Advisor, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    (root / "a").mkdir(parents=True)
    (root / "a" / "train.sh").write_text(KTO_SINGLE, encoding="utf-8")
    (root / "a" / "old.sh.gz").write_bytes(gzip.compress(KTO_SINGLE.encode()))
    (root / ".env").write_text(TOKEN, encoding="utf-8")
    (tmp_path / "secret.sh").write_text(KTO_SINGLE, encoding="utf-8")
    (root / "way-out.sh").symlink_to(tmp_path / "secret.sh")
    refused = ("../secret.sh", str(tmp_path / "secret.sh"), "way-out.sh", ".env", "a", "none.sh", "a\0b", "")

    async def go() -> None:
        async with Client(make_server(context(advisor), [root])) as client:
            for name in ("a/train.sh", str(root / "a" / "train.sh"), "a/old.sh.gz"):
                report = content(await client.call_tool("check_config", {"attachments": [{"path": name}]}))
                assert RULE in [item["rule_id"] for item in report["findings"] if item["status"] == "fired"]
                assert report["findings"][0]["evidence"][0]["attachment"] == name
            for name in refused:
                result = await client.call_tool("check_config", {"attachments": [{"path": name}]})
                assert result.is_error
                assert "not_found: path: " in str(result.content[0])
            (tools,) = [tool for tool in (await client.list_tools()).tools if tool.name == "check_config"]
            assert "path" in tools.input_schema["$defs"]["File"]["properties"]
        async with Client(make_server(context(advisor))) as client:
            result = await client.call_tool("check_config", {"attachments": [{"path": str(root / "a" / "train.sh")}]})
            assert "this server reads no files (start it with: trainmedic mcp --root FOLDER)" in str(result.content[0])

    asyncio.run(go())


def test_a_run_is_diagnosed_by_its_folder_alone(advisor: Advisor, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "kto"
    run.mkdir(parents=True)
    (run / "train.sh").write_text(KTO_SINGLE, encoding="utf-8")
    (run / "secret.log").symlink_to("/etc/passwd")

    async def go() -> None:
        async with Client(make_server(context(advisor), [tmp_path / "runs"])) as client:
            got = content(await client.call_tool("diagnose", {"run_dir": "kto"}))
            assert (got["verdict"], "train.sh" in got["read"]) == ("answered", True)
            for name in ("..", str(tmp_path), "none", "kto/train.sh"):
                assert refused(await client.call_tool("diagnose", {"run_dir": name})).startswith("not_found")
        async with Client(make_server(context(advisor))) as client:
            (tool, *_) = (await client.list_tools()).tools
            assert "run_dir" not in tool.input_schema["properties"]

    asyncio.run(go())


@both
def test_the_steps_of_an_investigation_are_progress(advisor: Advisor, mode: str) -> None:
    class Stepping(TemplateAnswerer):
        async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
            assert request.mode == "investigate"
            async for part in super().stream(request, trace_id, run):
                if isinstance(part, Draft):
                    for number in (1, 2):
                        yield StepView(number=number, tool="t", what=f"looked {number}", arguments={}, result="r")
                yield part

    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async def go() -> None:
        async with Client(make_server(context(advisor, Stepping(advisor))), mode=mode) as client:
            sent = {"question": "loss is nan", "mode": "investigate"}
            content(await client.call_tool("diagnose", sent, progress_callback=hear))

    asyncio.run(go())
    assert heard == [(1, "looked 1"), (2, "looked 2")]


# --- as a command ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command(knowledge_folder: Path, tmp_path_factory: pytest.TempPathFactory, knowledge_advisor: Advisor) -> Any:
    """How a client starts the command, with a data folder of its own."""
    data = tmp_path_factory.mktemp("stdio")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINMEDIC_")}
    environment |= {"TRAINMEDIC_DATA_DIR": str(data), "HF_HUB_OFFLINE": "1"}
    return StdioServerParameters(command=sys.executable, args=["-c", PROGRAM], env=environment, cwd=str(ROOT))


def test_the_command_writes_nothing_but_the_protocol_and_ends_with_its_input(command: Any) -> None:
    revision = REVISIONS["legacy"]
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = {"question": "loss 变成 nan", "attachments": [{"name": "t.sh", "content": KTO_SINGLE}]}
    call = {"name": "diagnose", "arguments": asked}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        "this is no JSON",
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}),
    ]
    returncode, messages, stderr = asyncio.run(exchange(command, lines, last_id=3))
    assert returncode == 0, stderr
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    results = {message["id"]: message["result"] for message in messages if "result" in message}
    assert results[1]["serverInfo"]["name"] == "trainmedic"
    assert results[1]["protocolVersion"] == revision
    assert [tool["name"] for tool in results[2]["tools"]] == TOOLS
    assert results[3]["structuredContent"]["verdict"] == "answered"


async def exchange(command: Any, lines: list[str], last_id: int) -> tuple[int | None, list[Any], bytes]:
    """Send ``lines``, wait for the answer to ``last_id``, end the input; returns exit status, messages and errors.

    The input stays open until the answer is there, because the end of the input cancels the requests in progress.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        command.command,
        *command.args,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=command.env,
        cwd=ROOT,
        limit=1024 * 1024,  # bytes of a line
    )
    assert process.stdin is not None
    assert process.stdout is not None
    messages: list[Any] = []
    try:
        async with asyncio.timeout(START_S):
            process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            async for line in process.stdout:
                messages.append(json.loads(line))
                if messages[-1].get("id") == last_id:
                    break
            process.stdin.close()
            rest, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    return process.returncode, messages + [json.loads(line) for line in rest.splitlines()], errors


@asynccontextmanager
async def over_http(url: str, mode: str, key: str | None = None, **headers: str) -> AsyncIterator[Client]:
    given = {**headers, **({"Authorization": f"Bearer {key}"} if key else {})}
    async with (
        httpx2.AsyncClient(headers=given, timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def service(knowledge_advisor: Advisor) -> Iterator[Callable[..., Live]]:
    running: list[Live] = []
    histories: list[History] = []

    def start(**settings: Any) -> Live:
        history = History("sqlite://")
        histories.append(history)
        advisor = Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history))
        parts = context(advisor, **settings)
        app = create_app(advisor, parts.settings)
        attach(app, parts, make_server)
        live = Live(app)
        live.__enter__()
        running.append(live)
        return live

    yield start
    for live in running:
        live.__exit__(None, None, None)
    for history in histories:
        history.close()


@pytest.fixture(scope="module")
def keyed(service: Callable[..., Live]) -> Live:
    return service(api_keys=f"other, {KEY}")


@pytest.fixture(scope="module")
def open_to_all(service: Callable[..., Live]) -> Live:
    return service(public_url="https://medic.example/")


@both
def test_the_service_has_the_same_tools_at_mcp(keyed: Live, mode: str) -> None:
    async def go() -> None:
        async with over_http(keyed.url, mode, KEY) as client:
            assert client.protocol_version == REVISIONS[mode]
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            sent = {"question": "loss is nan", "attachments": [{"name": "t.sh", "content": KTO_SINGLE}]}
            first, second = await asyncio.gather(*(client.call_tool("diagnose", sent) for _ in range(2)))
            assert content(first)["verdict"] == content(second)["verdict"] == "answered"
            assert refused(await client.call_tool("get_case", {"case_id": "x"})).startswith("not_found: ")

    asyncio.run(go())


@every_case("header", [None, "Bearer", f"Bearer {KEY}x", f"Basic {KEY}"])
@every_case("method", ["GET", "POST", "DELETE"])
def test_without_a_key_it_is_refused_in_the_shape_of_every_error(keyed: Live, header: str | None, method: str) -> None:
    headers = {"authorization": header} if header is not None else {}
    response = httpx.request(method, f"{keyed.url}/mcp", headers=headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "unauthorized"
    assert response.headers["www-authenticate"] == "Bearer"


def discover(live: Live, **headers: str) -> httpx.Response:
    """A request that every client may begin with."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    given = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
        **headers,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    return httpx.post(f"{live.url}/mcp", json=body, headers=given, timeout=30)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "medic.example"}, 200),
        ({"Host": "medic.example", "Origin": "https://medic.example"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_without_keys_no_web_page_of_somebody_else_reaches_it(
    open_to_all: Live, headers: dict[str, str], status: int
) -> None:
    assert discover(open_to_all, **headers).status_code == status


def test_with_keys_any_name_of_the_service_will_do(keyed: Live) -> None:
    assert discover(keyed, Host="trainmedic.internal:8000", Authorization=f"Bearer {KEY}").status_code == 200


@pytest.mark.parametrize(("body", "status"), [(b"no JSON", 400), (b"{}", 400), (b"x" * (16 * 1024 * 1024 + 1), 413)])
def test_what_is_no_message_is_refused(open_to_all: Live, body: bytes, status: int) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    response = httpx.post(f"{open_to_all.url}/mcp", content=body, headers=headers, timeout=30)
    assert response.status_code == status


def test_no_channels_libraries_are_imported_before_they_are_used() -> None:
    ours = "mcp.http", "mcp.command", "cli.check", "channels.slack", "channels.slack.command"
    code = f"import sys, {', '.join(f'trainmedic.ui.{name}' for name in ours)}; "
    code += "sys.exit(str({'mcp', 'slack_bolt', 'slack_sdk', 'aiohttp'} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.stderr.strip() == ""
