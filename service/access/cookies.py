"""Cookies of the pages, the form that asks for a key, and the paths and sites that either may lead to."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

SESSION = "trainmedic_session"
"""The secret of a stored session."""
BROWSER = "trainmedic_browser"
"""Tells the browsers of people who need no key apart: each may delete what it asked, and sees its own tabs alone."""
LASTS_S = 12 * 3600
"""Seconds that a session lasts."""
BROWSER_LASTS_S = 365 * 24 * 3600
LONGEST_FORM = 4_096
"""Bytes of the form that are read."""


class Cookies:
    """Our cookies. Over https all of them are ``Secure``, and their names bind them to this host alone."""

    def __init__(self, public_url: str) -> None:
        self._always_secure = public_url.startswith("https://")

    def secure(self, scope: Mapping[str, Any]) -> bool:
        """Whether the browser came over https, also if a proxy before us does not say so."""
        return self._always_secure or scope.get("scheme") == "https"

    def value(self, scope: Mapping[str, Any], name: str) -> str:
        """The value that the browser sent; empty without one."""
        return cookie(dict(scope["headers"]), full_name(name, secure=self.secure(scope))) or ""

    def header(
        self, scope: Mapping[str, Any], name: str, value: str, lasts_s: int, *, same_site: str = "Strict"
    ) -> str:
        """The Set-Cookie header: hidden from scripts, not sent from other sites."""
        secure = self.secure(scope)
        attributes = f"Path=/; Max-Age={lasts_s}; HttpOnly; SameSite={same_site}" + ("; Secure" if secure else "")
        return f"{full_name(name, secure=secure)}={value}; {attributes}"


def full_name(name: str, *, secure: bool) -> str:
    """The prefix makes browsers refuse such a cookie from another host of the domain, or over http."""
    return f"__Host-{name}" if secure else name


def cookie(headers: Mapping[bytes, bytes], name: str) -> str | None:
    # Not the library's parser: it gives up at the first cookie of another program on this host that it cannot read.
    for item in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        key, _, value = item.strip().partition("=")
        if key == name:
            return value
    return None


def new_browser() -> str:
    return secrets.token_urlsafe(32)


def browser_id(secret: str) -> str:
    """Who owns the conversations of a browser: its secret cannot be found out from it. Empty without a secret."""
    return "browser:" + hashlib.sha256(secret.encode()).hexdigest()[:32] if secret else ""


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
