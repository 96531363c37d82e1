"""Errors to HTTP: the one mapping, the one shape. Nothing of an exception that is not ours reaches a client."""

from __future__ import annotations

import logging
import traceback

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.service.api.presence import LEFT, Left

STATUS = {
    "invalid": 400,
    "unauthorized": 401,
    "not_found": 404,
    "too_large": 413,
    "rate_limited": 429,
    "unavailable": 503,
    "internal": 500,
}
_HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 401: "unauthorized"}
MAX_MESSAGE = 1_000
"""Code points of an error's message."""
log = logging.getLogger("trainmedic.api")


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    trace_id: str,
    hint: str | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """An error in the contract's shape. A message may repeat what was sent: it is masked and cut."""
    shown = mask(message.encode("utf-8", "replace").decode("utf-8")[:MAX_MESSAGE]).text
    body: dict[str, object] = {"code": code, "message": shown, "trace_id": trace_id}
    if hint is not None:
        body["hint"] = hint
    return JSONResponse({"error": body}, status_code=status, headers=headers)


def trace_id_of(request: Request) -> str:
    """The id of this request, as the middleware set it."""
    return str(getattr(request.state, "trace_id", ""))


def internal_error(trace_id: str) -> JSONResponse:
    """What a client is told of an error that is not one of ours: nothing but the id to ask about."""
    return error_response(500, "internal", "something went wrong on our side", trace_id=trace_id)


def log_unexpected(error: Exception, trace_id: str) -> None:
    """The traceback for the operator, masked: an exception's message may quote what was pasted."""
    trace = "".join(traceback.format_exception(error))
    log.error("unexpected error, trace_id=%s\n%s", trace_id, mask(trace).text)


def add_handlers(app: FastAPI) -> None:
    """Install the handlers on ``app``."""

    @app.exception_handler(TrainmedicError)
    async def _ours(request: Request, error: TrainmedicError) -> JSONResponse:
        headers = {"WWW-Authenticate": "Bearer"} if error.kind == "unauthorized" else None
        return error_response(
            STATUS[error.kind],
            error.code,
            error.message,
            trace_id=trace_id_of(request),
            hint=error.hint,
            headers=headers,
        )

    @app.exception_handler(Left)
    async def _left(request: Request, error: Left) -> Response:
        return Response(status_code=LEFT)

    @app.exception_handler(RequestValidationError)
    async def _malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        # The input itself is left out: it may hold what the user did not mean to send back and forth.
        parts = [f"{'.'.join(str(p) for p in item['loc'][1:]) or 'body'}: {item['msg']}" for item in error.errors()[:5]]
        return error_response(422, "invalid_request", "; ".join(parts), trace_id=trace_id_of(request))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        code = _HTTP_CODES.get(error.status_code, "http_error")
        headers = dict(error.headers) if error.headers else None
        return error_response(
            error.status_code, code, str(error.detail), trace_id=trace_id_of(request), headers=headers
        )
