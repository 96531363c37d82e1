"""The one exception of the client."""

from __future__ import annotations


class ServiceError(Exception):
    """A call that failed. Branch on ``code``, never on the text.

    Codes are those of the API (docs/connect/api.md), and of the client itself: ``unreachable`` (no connection, or it
    broke), ``timeout`` (the client's own; the service's has the same name), ``interrupted`` (a stream ended early),
    ``bad_response`` (not an answer of this API). ``status`` is the HTTP status, None without a response; ``trace_id``
    lets the operator of the service find the request in the logs.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        trace_id: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}" + (f" ({hint})" if hint else ""))
        self.code = code
        self.message = message
        self.hint = hint
        self.trace_id = trace_id
        self.status = status
