"""Request bodies. Responses are the dataclasses of `service.answer.schema` and `service.api.resources`."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer.schema import Answer, Citation
from trainmedic.service.dialogue.request import Ask

Name = Annotated[str, Field(min_length=1, max_length=255)]
YesNo = Annotated[bool, Field(strict=True)]


def number(value: object) -> object:
    """Refuse values that pydantic would convert to a number: "5" and true."""
    # bool is a subclass of int in Python, so `top_k: true` would count as 1.
    if isinstance(value, bool | str):
        raise ValueError("Input should be a number")
    return value


Whole = Annotated[int, BeforeValidator(number)]


class Body(BaseModel):
    """A request body. Unknown keys are errors, so that a misspelt option is not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class AttachmentIn(Body):
    """A pasted or dropped file; ``base64`` for a binary one, such as TensorBoard's event files."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"encoding": {"const": "base64"}}, "required": ["encoding"]},
            "then": {"properties": {"content": {"pattern": BASE64}}},
        }
    )

    name: Name
    content: str
    encoding: Literal["text", "base64"] = "text"

    @model_validator(mode="after")
    def _decodable(self) -> Self:
        if self.encoding == "base64":
            b64decode(self.content.strip(), validate=True)  # raises a ValueError, which pydantic reports
        return self

    def value(self) -> Attachment:
        """The attachment as the core's type."""
        content = b64decode(self.content) if self.encoding == "base64" else self.content
        return Attachment(name=self.name, content=content)


class AskIn(Body):
    """A question, attachments, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["question"], "properties": {"question": {"pattern": r"\S"}}},
                {"required": ["attachments"], "properties": {"attachments": {"minItems": 1}}},
            ]
        }
    )

    question: str = ""
    attachments: list[AttachmentIn] = Field(default_factory=list)
    conversation_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None
    language: Literal["auto", "en", "zh"] = "auto"
    stream: YesNo = False
    top_k: Whole = Field(5, ge=1, le=20)
    mode: Literal["auto", "deterministic", "investigate"] = "auto"

    def value(self) -> Ask:
        """The question as the core's type."""
        return Ask(
            question=self.question,
            attachments=tuple(attachment.value() for attachment in self.attachments),
            conversation_id=self.conversation_id,
            language=self.language,
            top_k=self.top_k,
            mode=self.mode,
        )


class CheckIn(Body):
    """The files of one run."""

    attachments: list[AttachmentIn] = Field(min_length=1)
    language: Literal["en", "zh"] = "en"


class AuditIn(Body):
    """The package lists of one environment, and the configuration and log of a run in it.

    ``good``: the package lists of an environment that works. ``possible``: the proposed versions also clear defects
    whose condition is not known.
    """

    attachments: list[AttachmentIn] = Field(min_length=1)
    good: list[AttachmentIn] = Field(default_factory=list)
    question: str = ""
    possible: YesNo = False
    language: Literal["en", "zh"] = "en"


class DiffIn(Body):
    """The files of a run that works and of one that fails: configuration, command, log, package list."""

    good: list[AttachmentIn] = Field(min_length=1)
    bad: list[AttachmentIn] = Field(min_length=1)
    language: Literal["en", "zh"] = "en"


class ExplainIn(Body):
    """A message, or files with messages, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["message"], "properties": {"message": {"pattern": r"\S"}}},
                {"required": ["attachments"], "properties": {"attachments": {"minItems": 1}}},
            ]
        }
    )

    message: str = ""
    attachments: list[AttachmentIn] = Field(default=[])
    language: Literal["en", "zh"] = "en"


class Filters(Body):
    """Restrict a search to cases of one framework, class of failure, or kind."""

    framework: str | None = None
    family: str | None = None
    kind: Literal["fault", "artefact"] | None = None


class SearchIn(Body):
    """A search over the cases."""

    query: Annotated[str, Field(min_length=1)]
    top_k: Whole = Field(10, ge=1, le=50)
    filters: Filters = Filters()
    language: Literal["auto", "en", "zh"] = "auto"


class FeedbackIn(Body):
    """Feedback on an answer; a second one replaces the first."""

    answer_id: Annotated[str, Field(min_length=1, max_length=64)]
    reaction: Literal["up", "down", "resolved"]
    reason: Annotated[str, Field(max_length=2_000)] = ""
    comment: Annotated[str, Field(max_length=20_000)] = ""


class CompletionMessage(BaseModel):
    """The answer as a message: its text, Markdown with citation markers."""

    role: Literal["assistant"]
    content: str


class CompletionChoice(BaseModel):
    """The only choice."""

    index: int
    message: CompletionMessage
    finish_reason: Literal["stop"]


class CompletionUsage(BaseModel):
    """Tokens of the model that wrote the text; 0 without a model."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionOut(BaseModel):
    """A chat completion, with the citations and the whole answer beside it."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    citations: list[Citation]
    trainmedic: Answer


def streams(example: str, description: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of a response that is an event stream on request."""
    one = {
        "type": "object",
        "required": ["data"],
        "properties": {
            "event": {"type": "string"},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
        "description": description,
    }
    events = {"itemSchema": one, "example": example}
    return {200: {"content": {"text/event-stream": events}}}


ANSWER_EVENTS = streams(
    'event: answer.delta\ndata: {"text": "..."}\n\nevent: answer\ndata: {"id": "...", "verdict": "answered"}\n\n',
    "With `stream`: `answer.draft` (the program's own answer, where a model will decide), events `answer.delta` "
    "(`{text}`) and `answer.step` (a step of an investigation), then `answer` "
    "(the whole answer object, whose text replaces the pieces) or `error` (the error object).",
)
COMPLETION_EVENTS = streams(
    'data: {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "..."}}]}\n\ndata: [DONE]\n\n',
    "With `stream`: chunks of the OpenAI protocol; the one with `finish_reason` has `citations` and `trainmedic`.",
)


class ErrorBody(BaseModel):
    """An error. Branch on ``code``, never on the text."""

    code: str
    message: str
    hint: str | None = None
    trace_id: str
    type: str | None = Field(None, description="of the OpenAI protocol, on its routes only")
    param: str | None = Field(None, description="the field at fault, on its routes only")


class ErrorOut(BaseModel):
    """The one error shape of every call."""

    error: ErrorBody
