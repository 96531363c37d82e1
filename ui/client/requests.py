"""Every call of the API as a value: what to send, and how to read what comes back. No input or output here.

`ui.client.synchronous` and `ui.client.asynchronous` send them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import httpx

from trainmedic.ui.client.failure import ServiceError
from trainmedic.ui.client.models import (
    Answer,
    CaseDocument,
    Delta,
    Hits,
    Readiness,
    Report,
    RuleDocument,
    Step,
    Versions,
    read,
)

T = TypeVar("T")
Language = Literal["auto", "en", "zh"]
Shown = Literal["en", "zh"]
Mode = Literal["auto", "deterministic", "investigate"]
Reaction = Literal["up", "down", "resolved"]
PAGE = 100
AGAIN = frozenset({429, 502, 503, 504})
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request. ``accepted`` are statuses that are answers although they are errors elsewhere."""

    method: str
    path: str
    kind: type[T]
    body: Mapping[str, Any] | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    accepted: frozenset[int] = frozenset()

    @property
    def repeatable(self) -> bool:
        """Whether a second time does no harm."""
        return self.method == "GET"


def read_files(*paths: str | Path) -> dict[str, str]:
    """Files as attachments, named as given. Bytes that are no UTF-8 are replaced. Raises `OSError`."""
    return {str(path): Path(path).read_bytes().decode("utf-8", "replace") for path in paths}


def ask_body(
    question: str,
    attachments: Mapping[str, str] | None,
    conversation_id: str | None,
    language: Language,
    top_k: int,
    mode: Mode,
) -> dict[str, Any]:
    """The body of a question."""
    body: dict[str, Any] = {
        "question": question,
        "attachments": files(attachments),
        "language": language,
        "top_k": top_k,
        "mode": mode,
    }
    return body if conversation_id is None else {**body, "conversation_id": conversation_id}


def files(attachments: Mapping[str, str] | None) -> list[dict[str, str]]:
    """Attachments on the wire."""
    return [{"name": name, "content": content} for name, content in (attachments or {}).items()]


def ask(body: Mapping[str, Any]) -> Call[Answer]:
    """A question."""
    return Call(method="POST", path="/v1/ask", kind=Answer, body=body)


def check(attachments: Mapping[str, str], language: Shown) -> Call[Report]:
    """The rules alone."""
    body = {"attachments": files(attachments), "language": language}
    return Call(method="POST", path="/v1/check", kind=Report, body=body)


def search(query: str, top_k: int, filters: Mapping[str, str | None], language: Language) -> Call[Hits]:
    """The cases nearest to a text."""
    chosen = {name: value for name, value in filters.items() if value is not None}
    body = {"query": query, "top_k": top_k, "filters": chosen, "language": language}
    return Call(method="POST", path="/v1/search", kind=Hits, body=body)


def page(kind: type[T], path: str, offset: int, filters: Mapping[str, str | None]) -> Call[T]:
    """One page of a list."""
    params = {name: value for name, value in filters.items() if value is not None}
    return Call(method="GET", path=path, kind=kind, params={**params, "offset": str(offset), "limit": str(PAGE)})


def case(case_id: str, language: Shown) -> Call[CaseDocument]:
    """One case."""
    return Call(method="GET", path=f"/v1/cases/{segment(case_id)}", kind=CaseDocument, params={"language": language})


def rule(rule_id: str, language: Shown) -> Call[RuleDocument]:
    """One rule."""
    return Call(method="GET", path=f"/v1/rules/{segment(rule_id)}", kind=RuleDocument, params={"language": language})


def answer(answer_id: str) -> Call[Answer]:
    """An answer given before."""
    return Call(method="GET", path=f"/v1/answers/{segment(answer_id)}", kind=Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Feedback as the service took it."""

    answer_id: str
    reaction: str


def feedback(answer_id: str, reaction: Reaction, reason: str, comment: str) -> Call[Stored]:
    """What somebody says about an answer."""
    body = {"answer_id": answer_id, "reaction": reaction, "reason": reason, "comment": comment}
    return Call(method="POST", path="/v1/feedback", kind=Stored, body=body)


READY = Call(method="GET", path="/readyz", kind=Readiness, accepted=frozenset({503}))
VERSION = Call(method="GET", path="/version", kind=Versions)


def segment(id: str) -> str:
    """An id as one segment of a path. Raises `ServiceError` for one that cannot be any."""
    if not id or set(id) <= {"."}:
        raise ServiceError("not_found", f"no such id: {id!r}")
    return quote(id, safe="")


def options(base_url: str, api_key: str | None, timeout_s: float) -> dict[str, Any]:
    """What both kinds of connection are made with."""
    headers = {"User-Agent": "trainmedic-client", "Accept": "application/json, text/event-stream"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    return {"base_url": base_url, "headers": headers, "timeout": httpx.Timeout(timeout_s)}


def answered(call: Call[T], response: httpx.Response) -> T:
    """The value in a response. Raises `ServiceError`."""
    if not response.is_success and response.status_code not in call.accepted:
        raise failure(response)
    return value(call.kind, response.text, response)


def value(kind: type[T], text: str, response: httpx.Response) -> T:
    """A value from JSON text. Raises `ServiceError`."""
    try:
        return read(kind, json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise ServiceError(
            "bad_response",
            f"not what this API answers: {error}",
            hint="is base_url that of trainmedic?",
            trace_id=response.headers.get("x-trace-id"),
            status=response.status_code,
        ) from error


def failure(response: httpx.Response) -> ServiceError:
    """The error that a response, read to its end, stands for."""
    try:
        error = dict(response.json()["error"])
        code, message, hint = str(error["code"]), str(error["message"]), error.get("hint")
    except (ValueError, TypeError, KeyError):
        error, hint = {}, None
        code, message = "bad_response", f"status {response.status_code} without an error of this API"
    trace_id = error.get("trace_id") or response.headers.get("x-trace-id")
    return ServiceError(code, message, hint=hint, trace_id=trace_id, status=response.status_code)


def broken(error: httpx.HTTPError | httpx.InvalidURL | httpx.StreamError, base_url: str) -> ServiceError:
    """The error for a connection that failed."""
    if isinstance(error, httpx.TimeoutException):
        return ServiceError("timeout", f"{base_url} did not answer in time", hint="a longer timeout_s may help")
    return ServiceError("unreachable", f"{base_url}: {type(error).__name__}: {error}", hint="is the service running?")


def delay_s(attempt: int, response: httpx.Response | None) -> float:
    """Seconds before attempt number ``attempt`` + 1; what the service asks for, within bounds."""
    after = response.headers.get("retry-after", "") if response is not None else ""
    wanted = float(after) if after.isascii() and after.isdigit() else FIRST_DELAY_S * 2**attempt
    return min(wanted, LONGEST_DELAY_S) * random.uniform(0.8, 1.0 if after else 1.2)


class Events:
    """Server-sent events, line by line: https://html.spec.whatwg.org/multipage/server-sent-events.html"""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._name = ""
        self._data: list[str] = []

    def feed(self, line: str) -> Delta | Step | Answer | None:
        """The part that this line completes, if any; kinds that are not known are passed over.

        Raises `ServiceError` for an error that the service reports, and for what is not of this API.
        """
        if line:
            name, _, rest = line.partition(":")
            if name == "event":
                self._name = rest.removeprefix(" ")
            elif name == "data":
                self._data.append(rest.removeprefix(" "))
            return None
        event, data = self._name, "\n".join(self._data)
        self._name, self._data = "", []
        if event == "error":
            raise self._reported(data)
        kinds: dict[str, Callable[[], Delta | Step | Answer]] = {
            "answer.delta": lambda: value(Delta, data, self._response),
            "answer.step": lambda: value(Step, data, self._response),
            "answer": lambda: value(Answer, data, self._response),
        }
        return kinds[event]() if event in kinds else None

    def _reported(self, data: str) -> ServiceError:
        error = value(Reported, data, self._response).error
        trace_id = error.get("trace_id") or self._response.headers.get("x-trace-id")
        return ServiceError(
            str(error.get("code", "internal")), str(error.get("message", "")), hint=error.get("hint"), trace_id=trace_id
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The error's envelope in a stream."""

    error: Mapping[str, Any]


def interrupted() -> ServiceError:
    """The error for a stream without an answer at its end."""
    return ServiceError("interrupted", "the stream ended before its answer", hint="ask again")
