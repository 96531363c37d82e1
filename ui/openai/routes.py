"""``/v1/chat/completions`` and ``/v1/models`` for clients of the OpenAI protocol, with citations beside the text.

The last user message is the question; earlier user messages count as earlier turns of the conversation. System messages
and sampling parameters are accepted and ignored, because no prompt may change a verdict.
"""

from __future__ import annotations

import json
import string
import time
import uuid
from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from trainmedic.kb.errors import InvalidRequest, NotFound, TooLarge
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.serialization import plain
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Answerer, Draft, Executor, Parts, Stage, StreamPart, final_answer
from trainmedic.service.api.conversations import principal_of
from trainmedic.service.api.disconnect import until_disconnect
from trainmedic.service.api.errors import trace_id_of
from trainmedic.service.api.routes import ERRORS, chained, event_stream, pieces
from trainmedic.service.api.schemas import COMPLETION_EVENTS, CompletionOut, Whole, YesNo
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS, Ask

MODEL = "trainmedic"
MAX_MESSAGES = 10_000
MAX_EARLIER = 200
"""Earlier user messages that are passed on: the first, and the latest."""
ASKING: dict[str, Any] = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"const": "user"},
        "content": {
            "anyOf": [
                {"type": "string", "pattern": r"\S"},
                {
                    "type": "array",
                    "contains": {
                        "type": "object",
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "text"}, "text": {"type": "string", "pattern": r"\S"}},
                    },
                },
            ]
        },
    },
}
"""JSON Schema of a message that can be the question; at least one message must match. For the API's description."""
_KIND_LETTERS = frozenset(string.ascii_lowercase + "_")
MAX_KIND = 32


class PartFile(BaseModel):
    """A file sent along; ``file_data`` is Base64, or a data URL with it."""

    model_config = ConfigDict(extra="ignore")

    filename: str = "file"
    file_data: str = ""


class Part(BaseModel):
    """A part of a message. Text and files with their content are read; others are named in the answer's notices."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""
    file: PartFile | None = None

    @property
    def attachment(self) -> Attachment | None:
        """The file with its content; None if the part has none."""
        if self.type != "file" or self.file is None or not self.file.file_data:
            return None
        data = self.file.file_data
        try:
            content = b64decode(data.partition(",")[2] if data.startswith("data:") else data, validate=True)
        except ValueError:  # some clients send the text itself
            return Attachment(name=self.file.filename, content=data)
        return Attachment(name=self.file.filename, content=content)


class Message(BaseModel):
    """One message of the conversation."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The message's text parts, one per line."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: YesNo = False


class Completion(BaseModel):
    """A chat completion request. Sampling parameters are ignored; ``language``, ``mode`` and ``top_k`` are ours."""

    model_config = ConfigDict(extra="ignore")

    model: str = MODEL
    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES, json_schema_extra={"contains": ASKING})
    stream: YesNo = False
    stream_options: StreamOptions | None = None
    language: Literal["auto", "en", "zh"] = "auto"
    mode: Literal["auto", "deterministic", "investigate"] = "auto"
    top_k: Whole = Field(5, ge=1, le=20)

    def question(self) -> Ask:
        """The last user message after the earlier ones, with the files of all; other roles are not evidence.

        Raises `InvalidRequest` if no user message contains text, and `TooLarge` for too many files.
        """
        users = [message for message in self.messages if message.role == "user"]
        texts = [message.text for message in users if message.text.strip()]
        if not texts:
            raise InvalidRequest("no user message with text", hint="send the question as a message of role user")
        parts = [part for message in users if isinstance(message.content, list) for part in message.content]
        files = [file for part in parts if (file := part.attachment) is not None]
        if len(files) > MAX_ATTACHMENTS:
            raise TooLarge(f"{len(files)} files; at most {MAX_ATTACHMENTS} in one request")
        earlier = texts[:-1]
        return Ask(
            question=texts[-1],
            attachments=tuple(files),
            earlier=tuple((*earlier[: max(len(earlier) - MAX_EARLIER, 0)][:1], *earlier[-MAX_EARLIER:])),
            language=self.language,
            mode=self.mode,
            top_k=self.top_k,
        )


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(BaseModel):
    """The only model: this service."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


def make_openai_router(answerer: Answerer, executor: Executor) -> APIRouter:
    """The routes of the protocol."""
    router = APIRouter(prefix="/v1", responses=ERRORS)
    card = ModelCard(id=MODEL, created=int(time.time()), owned_by=MODEL)

    @router.get("/models")
    async def models() -> ModelList:
        """The names allowed as ``model``."""
        return ModelList(data=[card])

    @router.get("/models/{model_id}")
    async def model(model_id: str) -> ModelCard:
        """One of these names; some clients ask for it before they send anything."""
        if model_id != MODEL:
            raise NotFound(f"no model {model_id[:MAX_KIND]!r}", hint=f"the only one is {MODEL}")
        return card

    @router.post("/chat/completions", response_model=CompletionOut, responses=COMPLETION_EVENTS)
    async def completions(body: Completion, request: Request) -> Response:
        """Answer the last user message; ``trainmedic`` beside the choices holds the whole answer object."""
        ask = replace(body.question(), owner=principal_of(request).id)
        unread = unread_parts(body.messages)
        parts = answerer.stream(ask, trace_id_of(request), executor)
        if body.stream:
            # Only on request, as in the protocol: some clients fail on a chunk without choices.
            usage = body.stream_options is not None and body.stream_options.include_usage
            # An invalid question must become an HTTP error, which is impossible once the stream has begun.
            first = await anext(parts)
            return event_stream(chunks(first, parts, usage, unread))
        answer = with_notice(await until_disconnect(request, final_answer(parts)), unread)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": unread_text(unread, answer.language) + answer.answer},
            "finish_reason": "stop",
        }
        completion = {
            **head(answer.id, "chat.completion"),
            "choices": [choice],
            "usage": usage_of(answer),
            **extra(answer),
        }
        return Response(json.dumps(completion, ensure_ascii=False), media_type="application/json")

    return router


def unread_parts(messages: Sequence[Message]) -> str:
    """The parts that the user sent and that are not read, such as ``image_url (2), input_audio (1)``."""
    parts = [
        part
        for message in messages
        if message.role == "user" and not isinstance(message.content, str)
        for part in message.content or ()
        if part.type != "text" and part.attachment is None
    ]
    kinds = Counter(part.type if _is_kind(part.type) else "other" for part in parts)
    return ", ".join(f"`{kind}` ({number})" for kind, number in kinds.items())


def _is_kind(type: str) -> bool:
    # The notice repeats the type, so it must not contain Markdown.
    return 0 < len(type) <= MAX_KIND and set(type) <= _KIND_LETTERS


def unread_text(unread: str, language: str) -> str:
    """The notice on unread parts before the answer's text, because most clients show nothing but the text."""
    return f"> {messages('not_text', language, parts=unread)}\n\n" if unread else ""


def with_notice(answer: Answer, unread: str) -> Answer:
    """The answer with a notice that names the unread parts."""
    if not unread:
        return answer
    return replace(answer, notices=(*answer.notices, messages("not_text", answer.language, parts=unread)))


def head(id: str, kind: str) -> dict[str, Any]:
    """The fields common to all objects of the protocol."""
    return {"id": f"chatcmpl-{id}", "object": kind, "created": int(time.time()), "model": MODEL}


def extra(answer: Answer) -> dict[str, Any]:
    """The fields beyond the protocol: the citations and the whole answer."""
    final_answer = plain(answer)
    assert isinstance(final_answer, dict)
    return {"citations": final_answer["citations"], "trainmedic": final_answer}


def usage_of(answer: Answer) -> dict[str, int]:
    """Tokens of the model; 0 without one."""
    prompt, completion = answer.usage.get("prompt_tokens", 0), answer.usage.get("completion_tokens", 0)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def chunks(first: StreamPart, parts: Parts, usage: bool, unread: str = "") -> AsyncIterator[str]:
    """The text in the protocol's chunks; the last one holds the citations and the whole answer.

    Sent text cannot be replaced in this protocol, so the results of verification follow it.
    """
    shared = head(uuid.uuid4().hex, "chat.completion.chunk")

    def chunk(delta: dict[str, str], reason: str | None = None, **more: Any) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return f"data: {json.dumps({**shared, 'choices': choices, **more}, ensure_ascii=True)}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(parts):
        async for part in chained(first, parts):
            if isinstance(part, Draft):
                for text in pieces(unread_text(unread, part.answer.language)):
                    yield chunk({"content": text})
                continue
            if isinstance(part, Stage):
                continue
            if not isinstance(part, Answer):
                for text in pieces(f"> {part.what}\n\n" if isinstance(part, StepView) else part.text):
                    yield chunk({"content": text})
                continue
            for text in pieces(verification_text(part)):
                yield chunk({"content": text})
            yield chunk({}, "stop", **extra(with_notice(part, unread)))
            if usage:
                yield f"data: {json.dumps({**shared, 'choices': [], 'usage': usage_of(part)})}\n\n"
    yield "data: [DONE]\n\n"


def verification_text(answer: Answer) -> str:
    """The notices on a model's text that was already sent; empty without a model."""
    if answer.mode != "llm" or not answer.notices:
        return ""
    return "\n\n" + "\n".join(f"> {notice}" for notice in answer.notices)
