"""Failures of a language model: every exception of its client becomes a `ModelError` with a kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import openai

BREAKS = frozenset({"absent", "slow", "server_error", "overloaded", "cut"})
"""Kinds that would probably repeat with the next call: they open the breaker."""
RETRIED = frozenset({"absent", "server_error", "overloaded"})
"""Kinds that are retried once if no token has arrived yet."""
# There is no code for it: vLLM, SGLang, llama.cpp and the OpenAI API all answer 400 with a sentence.
_TOO_LONG = (
    "context length",
    "maximum context",
    "max_model_len",
    "too many tokens",
    "longer than the maximum",
    "context window",
)


class ModelError(Exception):
    """A call of the model failed. ``detail`` holds no secret and is safe to log.

    ``kind``: absent, slow, refused, overloaded, server_error, cut, garbage, unknown_model, too_long, busy (no slot) or
    open (the circuit breaker is). ``invalid``: the server refused the request's form (HTTP 400 or 422).
    """

    def __init__(self, kind: str, detail: str = "", *, invalid: bool = False) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail
        self.invalid = invalid


@contextmanager
def failures() -> Iterator[None]:
    """Raise any exception of the client as a `ModelError`.

    Without its cause: a server's message may repeat the key and the pasted text, which a traceback would print.
    """
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise failure_of(error) from None


def failure_of(error: Exception) -> ModelError:
    """The `ModelError` for an exception of the client, with only its type and status code as detail."""
    name = type(error).__name__
    match error:
        # Before APIConnectionError, of which APITimeoutError is a subclass.
        case TimeoutError() | openai.APITimeoutError() | httpx.TimeoutException():
            return ModelError("slow", name)
        case openai.APIStatusError(status_code=code):
            return refusal_of(code, str(error), name)
        case openai.APIConnectionError() | httpx.ConnectError():
            return ModelError("absent", name)
        case httpx.TransportError():
            return ModelError("cut", name)
        case openai.APIResponseValidationError():
            return ModelError("garbage", name)
        case openai.APIError():  # an error that the server reports inside its stream
            return ModelError("too_long" if _is_too_long(str(error)) else "server_error", name)
        case _:
            return ModelError("garbage", name)


def refusal_of(code: int, message: str, name: str = "status") -> ModelError:
    """The `ModelError` for an answer with this status."""
    kind = _status(code, message)
    return ModelError(kind, f"{name} {code}", invalid=kind == "refused" and code in (400, 422))


def _is_too_long(message: str) -> bool:
    return any(words in message.lower() for words in _TOO_LONG)


def _status(code: int, message: str) -> str:
    if _is_too_long(message):
        return "too_long"
    if code == 404:
        return "unknown_model"
    # A gateway in front of the model timed out, which is the model being slow.
    if code in (408, 504):
        return "slow"
    if code in (429, 503):
        return "overloaded"
    return "server_error" if code >= 500 else "refused"
