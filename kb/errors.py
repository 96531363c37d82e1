"""One error vocabulary, for our own faults and misuse. What a user pastes never raises: it becomes a `Problem`."""

from __future__ import annotations


class TrainmedicError(Exception):
    """Base of all errors. ``code`` is stable, ``kind`` decides the HTTP status, ``str(error)`` is safe to show."""

    code = "internal"
    kind = "internal"
    """invalid, unauthorized, forbidden, not_found, too_large, rate_limited, unavailable, timeout or internal."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidRequest(TrainmedicError):
    """The request itself is malformed (not the text pasted in it)."""

    code = "invalid_request"
    kind = "invalid"


class Unauthorized(TrainmedicError):
    """A key is needed and was absent or wrong."""

    code = "unauthorized"
    kind = "unauthorized"


class Forbidden(TrainmedicError):
    """The key is valid but not for this."""

    code = "forbidden"
    kind = "forbidden"


class RateLimited(TrainmedicError):
    """Too many requests of one client."""

    code = "rate_limited"
    kind = "rate_limited"


class NotFound(TrainmedicError):
    """No such case, rule, answer or page."""

    code = "not_found"
    kind = "not_found"


class TooLarge(TrainmedicError):
    """The request is over a limit on size or count."""

    code = "too_large"
    kind = "too_large"


class InvalidSettings(TrainmedicError):
    """A setting is unknown, mistyped, or unsafe (listening beyond loopback without a key)."""

    code = "invalid_settings"
    kind = "invalid"


class InvalidPage(TrainmedicError):
    """A rule, case or glossary page does not follow its format."""

    code = "invalid_page"
    kind = "invalid"


class StoreError(TrainmedicError):
    """The index is absent, damaged, or was made by another embedder."""

    code = "store"
    kind = "unavailable"


class SourceError(TrainmedicError):
    """A package's source cannot be read: not allowed, not reachable, damaged, or unsafe."""

    code = "source"
    kind = "unavailable"
