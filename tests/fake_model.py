"""A scripted OpenAI-compatible model server on loopback, with real sockets.

    with FakeModel(Reply("The loss", " is NaN [1].")) as fake:
        ChatModel(ModelOptions(base_url=fake.url))

The n-th text asked for is answered by the n-th reply, further ones by the last; forms (``response_format``) have a
script of their own. Whatever a server can do wrong, a reply can: see `Reply`.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from trainmedic.service.llm.chat import ChatModel, ModelOptions

NAME = "fake-7b"
PATIENCE_S = 10.0
"""How long a test waits for something that is about to happen."""
REASONING = "reasoning_content"
End = Literal["done", "cut", "hold", "unfinished"]


class Thought(str):
    """A piece of text that the model only thinks, as servers with a parser for it say."""


class Reply:
    """One answer of the chat endpoint: pieces of text, then an end.

    ``end``: done; cut (the socket closes); hold (nothing more comes until `FakeModel.release`, then done); unfinished
    (the stream ends as it should, but says no reason). ``before_s`` is waited before the first piece and ``between_s``
    before each further one. ``status`` other than 200 sends ``error`` as the server's message; ``raw`` replaces the
    whole body of a 200. ``calls`` are tools called after the text: name and arguments (a string goes as it is).
    Pieces that are a `Thought` are told apart from the text.
    """

    def __init__(
        self,
        *pieces: str,
        end: End = "done",
        finish: str = "stop",
        before_s: float = 0.0,
        between_s: float = 0.0,
        status: int = 200,
        error: str = "it went wrong",
        raw: bytes | None = None,
        calls: Sequence[tuple[str, Mapping[str, Any] | str]] = (),
    ) -> None:
        self.pieces = pieces
        self.calls = calls
        self.end = end
        self.finish = "tool_calls" if calls and finish == "stop" else finish
        self.before_s = before_s
        self.between_s = between_s
        self.status = status
        self.error = error
        self.raw = raw


def failing(status: int, error: str = "it went wrong") -> Reply:
    """A refusal with this status and message."""
    return Reply(status=status, error=error)


def calling(name: str, **arguments: Any) -> Reply:
    """One call of a tool."""
    return Reply(calls=[(name, arguments)])


def form(value: object) -> Reply:
    """A form filled with this value."""
    return Reply(json.dumps(value))


def hypothesis(**changes: Any) -> dict[str, Any]:
    """One hypothesis of a diagnosis."""
    empty = {"candidate": "", "title": "A micro-batch of one class", "because": "The mean over an empty class is NaN."}
    more = {"lines_for": ["L1"], "lines_against": [], "change": "", "edits": [], "command": "", "verify": ""}
    return {**empty, **more, **changes}


def diagnosis(*hypotheses: dict[str, Any], **changes: Any) -> Reply:
    """A diagnosis with these hypotheses; one without any has the usual one."""
    fields = {"reading": "A NaN.", "verdict": "cause", "sure": 96, "question": "", "reply": ""}
    return form({**fields, "hypotheses": list(hypotheses), **changes})


def electing(title: str, **changes: Any) -> Callable[[Request], Reply]:
    """A diagnosis that elects the candidate with this title, if it is one, or has a hypothesis of its own."""

    def reply(asked: Request) -> Reply:
        found = re.search(rf"(C\d+) {re.escape(title)}", asked.prompt)
        return diagnosis(hypothesis(candidate=found[1] if found else "", **changes))

    return reply


SILENT = Reply(end="hold")
"""A request taken and not answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked. ``body`` is empty where there was none."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_form(self) -> bool:
        """Whether an answer in a given shape was asked for."""
        return "response_format" in self.body

    @property
    def is_short(self) -> bool:
        """Whether it asks for a probability, or only tries what the endpoint can do."""
        return "stream" not in self.body

    @property
    def prompt(self) -> str:
        """All that the model is shown, messages one after the other."""
        return "\n".join(message["content"] or "" for message in self.body.get("messages", []))


class FakeModel:
    """The server, running between ``with`` and its end in a thread of its own.

    ``tokenize`` counts a text's tokens, None: there is no such endpoint, a `Reply`: what it answers instead.
    ``models`` are the names (or whole entries) that it lists, or what it answers instead. ``refused`` is a field that
    no request may have; ``template`` is how its chat template ends a prompt. Past the end of the script the last reply
    comes again. ``able`` names what it can do beside writing (fields of `Abilities`), ``says`` how probable it finds it
    that a question is to be answered with yes.
    """

    def __init__(
        self,
        *script: Reply,
        forms: Sequence[Reply | Callable[[Request], Reply]] = (),
        tokenize: Callable[[str], int] | Reply | None = lambda text: len(text.encode()) // 4,
        models: Sequence[str | Mapping[str, Any]] | Reply = (NAME,),
        refused: str = "",
        template: str = "",
        able: Collection[str] = ("structured", "tools"),
        says: Callable[[str], float] = lambda question: 0.5,
    ) -> None:
        self.able = able
        self._says = says
        self._refused = refused
        self._template = template
        self.requests: list[Request] = []
        self._script = script
        self._forms = forms
        self._tokenize = tokenize
        self.listing = models
        self._disconnected = 0
        self._held = 0
        self._changed = threading.Condition()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fake-model", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    @property
    def url(self) -> str:
        """The endpoint, as settings name it."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def texts(self) -> list[Request]:
        """Requests for a text, in the order they came."""
        chats = [each for each in self.requests if each.path.endswith("/completions")]
        return [each for each in chats if not (each.is_form or each.is_short)]

    @property
    def forms(self) -> list[Request]:
        """Requests for a form, in the order they came."""
        return [each for each in self.requests if each.is_form and not each.is_short]

    @property
    def votes(self) -> list[Request]:
        """Requests for the probability of an answer about a report."""
        return [each for each in self.requests if each.is_short and "# Report" in str(each.body)]

    @property
    def counted(self) -> list[str]:
        """The texts whose tokens were asked for."""
        return [each.body["prompt"] for each in self.requests if "prompt" in each.body]

    @property
    def disconnected(self) -> int:
        """Requests whose asker was gone before the answer was complete."""
        return self._disconnected

    def release(self) -> None:
        """Let everything that is held go on."""
        self._loop.call_soon_threadsafe(self._go.set)

    async def until_disconnected(self, times: int = 1) -> None:
        """Wait until so many askers have gone."""
        await self._until(lambda: self._disconnected >= times)

    async def until_held(self, times: int = 1) -> None:
        """Wait until so many answers have been held."""
        await self._until(lambda: self._held >= times)

    async def _until(self, true: Callable[[], bool]) -> None:
        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(true, PATIENCE_S)

        assert await asyncio.to_thread(wait)

    def _count(self, name: Literal["_held", "_disconnected"]) -> None:
        with self._changed:
            setattr(self, name, getattr(self, name) + 1)
            self._changed.notify_all()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop, self._go = asyncio.Event(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await server.wait_closed()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request; every answer closes its connection."""
        try:
            asked = await _request(reader)
            if asked is not None:
                self.requests.append(asked)
                await self._watched(self._answer(asked, writer), reader)
        except ConnectionError:
            self._count("_disconnected")
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _watched(self, answer: Any, reader: asyncio.StreamReader) -> None:
        """The answer, until it is complete or the asker goes."""
        answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self._count("_disconnected")
        finally:
            answering.cancel()
            leaving.cancel()
            for ended in await asyncio.gather(answering, leaving, return_exceptions=True):
                if isinstance(ended, Exception) and not isinstance(ended, ConnectionError):
                    raise ended

    async def _answer(self, asked: Request, writer: asyncio.StreamWriter) -> None:
        match asked.path:
            case "/v1/models":
                data = (
                    []
                    if isinstance(self.listing, Reply)
                    else [{"id": each} if isinstance(each, str) else each for each in self.listing]
                )
                reply = self.listing if isinstance(self.listing, Reply) else Reply()
                await self._whole(reply, {"object": "list", "data": data}, writer)
            case "/tokenize" if "messages" in asked.body:
                await self._whole(Reply(), {"count": 3, "token_strs": ["?", "assistant", self._template]}, writer)
            case "/tokenize" if self._tokenize is not None:
                tokenize = self._tokenize
                counted = 0 if isinstance(tokenize, Reply) else tokenize(asked.body["prompt"])
                reply = tokenize if isinstance(tokenize, Reply) else Reply()
                await self._whole(reply, {"count": counted}, writer)
            case "/v1/chat/completions" if self._refused and self._refused in asked.body:
                await self._whole(failing(400, "Unrecognized request argument supplied"), {}, writer)
            case "/v1/chat/completions" if asked.is_short:
                await self._whole(Reply(), self._short(asked), writer)
            case "/v1/decisions" if "decisions" in self.able:
                chances = [self._says(f"{asked.body['input']}\n{q['instructions']}") for q in asked.body["questions"]]
                answers = [{"type": "predicate", "name": None, "probability": chance} for chance in chances]
                await self._whole(Reply(), {"model": NAME, "answers": answers}, writer)
            case "/v1/chat/completions":
                before = self.forms if asked.is_form else self.texts
                script = self._forms if asked.is_form else self._script
                scripted = script[min(len(before), len(script)) - 1] if script else failing(400, "nothing is scripted")
                reply = scripted(asked) if callable(scripted) else scripted
                if asked.body.get("stream"):
                    await self._streamed(reply, asked, writer)
                else:
                    await self._whole(reply, _completion(reply, asked), writer)
            case _:
                await self._whole(failing(404, "Not Found"), {}, writer)

    def _short(self, asked: Request) -> dict[str, Any]:
        """A word, and whatever of what is asked for it can do."""
        whole = _completion(Reply("Hello."), asked)
        choice = whole["choices"][0]
        if "structured" in self.able and asked.is_form:
            choice["message"]["content"] = '{"number": 7}'
        if "tools" in self.able and "tools" in asked.body:
            choice["message"]["tool_calls"] = _calls(calling("note", number=7))
        if "logprobs" in self.able and "logprobs" in asked.body:
            yes = self._says(asked.prompt)
            tokens = [{"token": token, "logprob": math.log(p)} for token, p in (("Yes", yes), (" No", 1 - yes))]
            choice["logprobs"] = {"content": [{**tokens[0], "top_logprobs": tokens}]}
        return whole

    async def _whole(self, reply: Reply, value: object, writer: asyncio.StreamWriter) -> None:
        """An answer in one piece."""
        await self._pause(reply.before_s)
        if reply.end == "hold":
            await self._hold()
        if reply.end == "cut":
            return
        if reply.status != 200:
            value = {"error": {"message": reply.error, "type": "Error", "code": reply.status}}
        body = reply.raw if reply.raw is not None else json.dumps(value).encode()
        writer.write(_head(reply.status, "application/json", f"content-length: {len(body)}") + body)
        await writer.drain()

    async def _streamed(self, reply: Reply, asked: Request, writer: asyncio.StreamWriter) -> None:
        """An answer in server-sent events."""
        if reply.status != 200 or (not (reply.pieces or reply.calls) and reply.end in ("cut", "hold")):
            await self._whole(reply, {}, writer)
            return
        writer.write(_head(200, "text/event-stream", "transfer-encoding: chunked"))
        if reply.raw is not None:
            await _chunk(writer, reply.raw)
        else:
            await self._events(reply, asked, writer)
            if reply.end == "cut":
                return
        await _chunk(writer, b"")

    async def _events(self, reply: Reply, asked: Request, writer: asyncio.StreamWriter) -> None:
        await _event(writer, _piece(asked, {"role": "assistant", "content": ""}))
        for number, piece in enumerate(reply.pieces):
            await self._pause(reply.between_s if number else reply.before_s)
            await _event(writer, _piece(asked, {REASONING if isinstance(piece, Thought) else "content": piece}))
        for number, call in enumerate(_calls(reply)):
            # As vLLM does: name first, then the arguments in pieces.
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            begun = {**call, "index": number, "function": {"name": name, "arguments": ""}}
            await _event(writer, _piece(asked, {"tool_calls": [begun]}))
            for part in (arguments[:7], arguments[7:]):
                more = {"index": number, "function": {"arguments": part}}
                await _event(writer, _piece(asked, {"tool_calls": [more]}))
        if reply.end == "hold":
            await self._hold()
        if reply.end in ("done", "hold"):
            await _event(writer, _piece(asked, {"content": ""}, reply.finish))
            await _event(writer, {**_piece(asked, {}), "choices": [], "usage": _usage(reply)})
            await _chunk(writer, b"data: [DONE]\n\n")

    async def _hold(self) -> None:
        self._count("_held")
        await self._go.wait()

    async def _pause(self, seconds: float) -> None:
        if seconds:
            await asyncio.sleep(seconds)


async def _request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, None where it ends instead."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except asyncio.IncompleteReadError:
        return None
    return Request(path=head[0].split(" ")[1], headers=headers, body=json.loads(body) if body else {})


def _head(status: int, kind: str, length: str) -> bytes:
    return f"HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\n{length}\r\nconnection: close\r\n\r\n".encode()


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()


async def _event(writer: asyncio.StreamWriter, value: object) -> None:
    await _chunk(writer, f"data: {json.dumps(value)}\n\n".encode())


def _calls(reply: Reply) -> list[dict[str, Any]]:
    """The tools that it calls, in the protocol's form."""
    return [
        {"id": f"call-{id(reply):x}-{number}", "type": "function", "function": {"name": name, "arguments": said}}
        for number, (name, given) in enumerate(reply.calls)
        for said in [given if isinstance(given, str) else json.dumps(given)]
    ]


def _piece(asked: Request, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    named = {"id": "chatcmpl-1", "created": 1, "model": asked.body["model"]}
    return {**named, "object": "chat.completion.chunk", "choices": [choice]}


def _completion(reply: Reply, asked: Request) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(each for each in reply.pieces if not isinstance(each, Thought)),
    }
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    named = {"id": "chatcmpl-1", "created": 1, "model": asked.body["model"]}
    return {**named, "object": "chat.completion", "choices": [choice], "usage": _usage(reply)}


def _usage(reply: Reply) -> dict[str, Any]:
    """100 tokens in, 64 of them cached, and one token a piece out."""
    out = len(reply.pieces)
    return {
        "prompt_tokens": 100,
        "completion_tokens": out,
        "total_tokens": 100 + out,
        "prompt_tokens_details": {"cached_tokens": 64},
    }


@asynccontextmanager
async def chat(url: str, **changes: Any) -> AsyncIterator[ChatModel]:
    """A client of the model at ``url`` that is in no hurry."""
    values: dict[str, Any] = {"base_url": url, "timeout_s": 2 * PATIENCE_S, "first_token_s": 2 * PATIENCE_S} | changes
    model = ChatModel(ModelOptions(**values))
    try:
        yield model
    finally:
        await model.aclose()
