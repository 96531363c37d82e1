"""Sessions of the pages in a cookie that scripts cannot read, and what a request to the pages may come from."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Collection, Mapping
from urllib.parse import parse_qs, urlsplit

COOKIE = "trainmedic_session"
LASTS_S = 12 * 3600
"""Seconds that a session lasts."""
LONGEST_FORM = 4_096
"""Bytes of the form that are read."""
SIGN_IN, BEGIN, CALLBACK = "/auth/", "/auth/login", "/auth/callback"
"""Where signing in at an identity provider is served, begins, and comes back to."""
STORED = "s."
"""Begins the cookie of a session that the database knows, followed by its secret."""
# Part of what is signed, so that a signature made with this key elsewhere is no session here.
PURPOSE = b"trainmedic pages v1"


class Entry:
    """Sessions opened with a key of the settings. Without any key, access is open.

    A session is its expiry time signed with the key: it needs no store, survives a restart, and ends when the key is
    removed.
    """

    def __init__(self, keys: frozenset[str]) -> None:
        self._keys = tuple(key.encode() for key in sorted(keys))

    @property
    def asked(self) -> bool:
        """Whether a key is required."""
        return bool(self._keys)

    def admits(self, headers: Mapping[bytes, bytes], now: float | None = None) -> bool:
        """Whether a request with these headers (lower-case names) has a valid key or session."""
        if not self._keys:
            return True
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and self._known(key.strip()) is not None:
            return True
        return self.key_of(headers, now) is not None

    def key_of(self, headers: Mapping[bytes, bytes], now: float | None = None) -> bytes | None:
        """The key that the request's session was opened with; None without a valid session."""
        value = cookie(headers, COOKIE)
        return self._valid(value, time.time() if now is None else now) if value is not None else None

    def session(self, key: str, now: float | None = None) -> str | None:
        """The cookie's value for a valid key, else None."""
        known = self._known(key.strip().encode())
        if known is None:
            return None
        end = str(int((time.time() if now is None else now) + LASTS_S))
        return f"{end}.{signature(known, end)}"

    def _known(self, key: bytes) -> bytes | None:
        # Every key is compared, so that the time taken says nothing about which one was close.
        matches = [known for known in self._keys if hmac.compare_digest(key, known)]
        return matches[0] if matches else None

    def _valid(self, value: str, now: float) -> bytes | None:
        end, _, signed = value.partition(".")
        if not (end.isascii() and end.isdigit() and len(end) <= 12 and signed.isascii()):
            return None
        matches = [key for key in self._keys if hmac.compare_digest(signed, signature(key, end))]
        return matches[0] if matches and int(end) > now else None


def cookie(headers: Mapping[bytes, bytes], name: str) -> str | None:
    # Not the library's parser: it gives up at the first cookie of another program on this host that it cannot read.
    for item in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        key, _, value = item.strip().partition("=")
        if key == name:
            return value
    return None


def signature(key: bytes, end: str) -> str:
    return hmac.new(key, PURPOSE + end.encode(), hashlib.sha256).hexdigest()


def set_cookie(value: str, *, secure: bool, lasts_s: int = LASTS_S, same_site: str = "Strict") -> str:
    """The Set-Cookie header: hidden from scripts, not sent from other sites."""
    attributes = f"Path=/; Max-Age={lasts_s}; HttpOnly; SameSite={same_site}" + ("; Secure" if secure else "")
    return f"{COOKIE}={value}; {attributes}"


def form_of(body: bytes) -> tuple[str, str]:
    """The key and the target page in the posted form."""
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=8)
    except ValueError:  # our form has two fields; more are an attack
        fields = {}
    return fields.get("key", [""])[0], own_path(fields.get("next", ["/"])[0])


def own_path(target: str) -> str:
    """``target`` if it is a path of this service, else ``/``: no open redirects."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return "/"
    # Browsers read `//host` and `/\host` as addresses of another site.
    plain = not parts.scheme and not parts.netloc and target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if plain and target.isprintable() and "\\" not in target else "/"


def same_site(headers: Mapping[bytes, bytes], hosts: Collection[str]) -> bool:
    """Whether a request that changes something comes from our own pages, or from no page at all."""
    origin = headers.get(b"origin")
    if origin is None:
        return True
    try:
        from_ = urlsplit(origin.decode("latin-1")).netloc
    except ValueError:
        return False
    return from_ != "" and from_ in hosts
