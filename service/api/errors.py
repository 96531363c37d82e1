"""The one mapping from errors to HTTP responses. Nothing of an exception that is not ours reaches a client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.trace import trace_of
from trainmedic.service.access.gate import headers_of
from trainmedic.service.access.scopes import methods_of
from trainmedic.service.api.disconnect import CLIENT_CLOSED_REQUEST, ClientDisconnected

STATUS = {
    "invalid": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "too_large": 413,
    "rate_limited": 429,
    "unavailable": 503,
    "timeout": 504,
    "internal": 500,
}
OPENAI_PATHS = ("/v1/chat/", "/v1/models")
"""Routes of the OpenAI protocol, whose errors have a type and the parameter at fault."""
OPENAI_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
NO_OBJECT = "model_attributes_type"
"""pydantic's name for a body that is no JSON object, such as one without the header that says that it is JSON."""
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
    path: str = "",
    param: str | None = None,
) -> JSONResponse:
    """An error in the contract's shape. A message may repeat what was sent: it is masked and cut."""
    # Lone surrogates, which JSON may contain, cannot be encoded in the response.
    masked = mask(message.encode("utf-8", "replace").decode("utf-8")[:MAX_MESSAGE]).text
    body: dict[str, object] = {"code": code, "message": masked, "trace_id": trace_id}
    if hint is not None:
        body["hint"] = hint
    if path.startswith(OPENAI_PATHS):
        fallback = "server_error" if status >= 500 else "invalid_request_error"
        body |= {"type": OPENAI_TYPES.get(status, fallback), "param": param}
    return JSONResponse({"error": body}, status_code=status, headers=headers)


def response_of(
    error: TrainmedicError, trace_id: str, path: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """The response to one of our errors."""
    return error_response(
        STATUS[error.kind],
        error.code,
        error.message,
        trace_id=trace_id,
        hint=error.hint,
        headers=headers_of(error) if headers is None else headers,
        path=path,
    )


def trace_id_of(request: Request) -> str:
    """The id of this request, set by the middleware."""
    return str(getattr(request.state, "trace_id", ""))


def unexpected(error: Exception, trace_id: str, path: str) -> JSONResponse:
    """The response for an error that is not ours: nothing but the trace id. The traceback is the operator's."""
    log.error("unexpected error, trace_id=%s\n%s", trace_id, trace_of(error))
    return error_response(500, "internal", "something went wrong on our side", trace_id=trace_id, path=path)


def add_handlers(app: FastAPI) -> None:
    """Install the handlers on ``app``."""

    @app.exception_handler(TrainmedicError)
    async def _ours(request: Request, error: TrainmedicError) -> JSONResponse:
        return response_of(error, trace_id_of(request), request.url.path)

    @app.exception_handler(ClientDisconnected)
    async def _disconnected(request: Request, error: ClientDisconnected) -> Response:
        return Response(status_code=CLIENT_CLOSED_REQUEST)

    @app.exception_handler(RequestValidationError)
    async def _malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        items = error.errors()[:5]
        is_json = "json" in request.headers.get("content-type", "")
        unlabelled = items[0]["type"] == NO_OBJECT and items[0]["loc"] == ("body",) and not is_json
        return error_response(
            422,
            "invalid_request",
            "; ".join(_problem(item) for item in items),
            trace_id=trace_id_of(request),
            hint="send the header content-type: application/json" if unlabelled else None,
            path=request.url.path,
            param=_field(items[0]) or None,
        )

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        code = _HTTP_CODES.get(error.status_code, "http_error")
        headers = dict(error.headers) if error.headers else None
        if error.status_code == 405 and (methods := methods_of(request.url.path)):
            # The router names the methods of the first route of this path only.
            headers = {"Allow": ", ".join(methods)}
        return error_response(
            error.status_code,
            code,
            str(error.detail),
            trace_id=trace_id_of(request),
            headers=headers,
            path=request.url.path,
        )


def _field(item: Mapping[str, Any]) -> str:
    """The path of the field at fault; empty for the body as a whole."""
    return "" if item["type"] == "json_invalid" else ".".join(str(part) for part in item["loc"][1:])


def _problem(item: Mapping[str, Any]) -> str:
    if item["type"] == "json_invalid":
        return f"body: no valid JSON at character {item['loc'][-1]}: {item['ctx']['error']}"
    if item["type"] == NO_OBJECT:
        return f"{_field(item) or 'body'}: a JSON object is needed"
    return f"{_field(item) or 'body'}: {item['msg']}"
