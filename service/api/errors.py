"""The one mapping from errors to HTTP responses. Nothing of an exception that is not ours reaches a client."""

from __future__ import annotations

import logging
import traceback

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.service.api.disconnect import CLIENT_CLOSED_REQUEST, ClientDisconnected

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
    # Lone surrogates, which JSON may contain, cannot be encoded in the response.
    masked = mask(message.encode("utf-8", "replace").decode("utf-8")[:MAX_MESSAGE]).text
    body: dict[str, object] = {"code": code, "message": masked, "trace_id": trace_id}
    if hint is not None:
        body["hint"] = hint
    return JSONResponse({"error": body}, status_code=status, headers=headers)


def trace_id_of(request: Request) -> str:
    """The id of this request, set by the middleware."""
    return str(getattr(request.state, "trace_id", ""))


def internal_error(trace_id: str) -> JSONResponse:
    """The response for an error that is not ours: nothing but the trace id."""
    return error_response(500, "internal", "something went wrong on our side", trace_id=trace_id)


def log_unexpected(error: Exception, trace_id: str) -> None:
    """The traceback for the operator, masked: an exception's message may quote the input."""
    trace = "".join(traceback.format_exception(error))
    log.error("unexpected error, trace_id=%s\n%s", trace_id, mask(trace).text)


def add_handlers(app: FastAPI) -> None:
    """Install the handlers on ``app``."""

    @app.exception_handler(TrainmedicError)
    async def _ours(request: Request, error: TrainmedicError) -> JSONResponse:
        # RFC 9110 requires it with every 401.
        headers = {"WWW-Authenticate": "Bearer"} if error.kind == "unauthorized" else None
        return error_response(
            STATUS[error.kind],
            error.code,
            error.message,
            trace_id=trace_id_of(request),
            hint=error.hint,
            headers=headers,
        )

    @app.exception_handler(ClientDisconnected)
    async def _disconnected(request: Request, error: ClientDisconnected) -> Response:
        return Response(status_code=CLIENT_CLOSED_REQUEST)

    @app.exception_handler(RequestValidationError)
    async def _malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        # Without the input itself: it may hold secrets.
        parts = [f"{'.'.join(str(p) for p in item['loc'][1:]) or 'body'}: {item['msg']}" for item in error.errors()[:5]]
        return error_response(422, "invalid_request", "; ".join(parts), trace_id=trace_id_of(request))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        code = _HTTP_CODES.get(error.status_code, "http_error")
        headers = dict(error.headers) if error.headers else None
        return error_response(
            error.status_code, code, str(error.detail), trace_id=trace_id_of(request), headers=headers
        )
