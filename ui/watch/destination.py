"""Delivers a diagnosis: as JSON to an http(s) address, to everything else through Apprise.

The address is the user's own, so internal hosts are allowed; redirects, which someone else decides, are not followed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from trainmedic.kb.errors import InvalidSettings
from trainmedic.ui.present.slack_text import inert

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """``body`` is for programs, ``title`` and ``text``, in Markdown, for people; nothing in it is unmasked."""

    body: Mapping[str, object]
    title: str
    text: str


class NotDelivered(Exception):
    """Why, without the address, which may be a secret."""


Destination = Callable[[Notice], None]
"""Delivers a notice. Raises `NotDelivered`."""


def destination(url: str) -> Destination:
    """The destination at ``url``. Raises `InvalidSettings`."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise InvalidSettings("the webhook's URL cannot be read") from None
    if parts.scheme in ("http", "https"):
        if not host:
            raise InvalidSettings("the webhook's URL has no host")
        return by_post(url)
    return by_apprise(url)


def by_post(url: str) -> Destination:
    def send(notice: Notice) -> None:
        import httpx

        body = json.dumps(notice.body, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json"}
        try:
            # Streamed: the response's body is never read, whatever its size.
            with httpx.stream("POST", url, content=body, headers=headers, timeout=TIMEOUT_S) as response:
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotDelivered(type(error).__name__) from None
        if not 200 <= status < 300:
            raise NotDelivered(f"HTTP {status}")

    return send


def by_apprise(url: str) -> Destination:
    """Any service that the package apprise knows, by its URL: ``slack://…``, ``dingtalk://…``, ``mailto://…``."""
    try:
        import apprise
    except ImportError:
        raise InvalidSettings(
            "such a webhook needs the package apprise", hint="pip install 'trainmedic[notify]', or an http(s) URL"
        ) from None
    # Nothing is kept on disk, and no plugins or configuration are loaded from elsewhere.
    asset = apprise.AppriseAsset(
        app_id="trainmedic",
        app_desc="trainmedic",
        app_url="",
        async_mode=False,
        http_redirects=False,
        storage_mode=apprise.PersistentStoreMode.MEMORY,
    )
    server = apprise.Apprise.instantiate(url, asset=asset)
    if server is None:
        raise InvalidSettings("the webhook's URL is neither http(s) nor one that apprise knows")
    server.redirects = False  # the URL itself could ask for them
    server.overflow_mode = apprise.OverflowMode.SPLIT
    receivers = apprise.Apprise(server, asset=asset)

    def send(notice: Notice) -> None:
        sent = receivers.notify(
            title=inert(notice.title),
            body=inert(notice.text),
            notify_type=apprise.NotifyType.FAILURE,
            body_format=apprise.NotifyFormat.MARKDOWN,
        )
        if not sent:
            raise NotDelivered("refused, or not reached")

    return send
