"""Slack's requests over HTTP, verified before slack_bolt sees them: it parses first and verifies later.

The signature is Slack's version 0: HMAC-SHA256 of the signing secret over ``v0:{timestamp}:{body}``, the timestamp
within five minutes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qs

from slack_sdk.signature import SignatureVerifier

PATH = "/slack/events"


def why_refused(headers: Mapping[str, str], body: bytes, secret: str) -> tuple[int, str] | None:
    """Status and error code if the request is not Slack's, else None. Header names are in lower case."""
    timestamp = headers.get("x-slack-request-timestamp", "")
    signature = headers.get("x-slack-signature", "")
    # Checked first: `int` of a Unicode digit string succeeds, and `compare_digest` raises for non-ASCII text.
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 11 and signature.isascii()):
        return 401, "unsigned"
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return 400, "no_text"
    # Also rejects timestamps more than five minutes old, so a recorded request cannot be replayed later.
    if not SignatureVerifier(secret).is_valid(text, timestamp, signature):
        return 401, "wrong_signature"
    return None if is_shaped(text, headers.get("content-type", "")) else (400, "malformed")


def is_shaped(text: str, content_type: str) -> bool:
    """Whether this is a JSON object, or a form as Slack sends it."""
    try:
        if content_type.partition(";")[0].strip() == "application/json":
            return isinstance(json.loads(text), dict)
        # Commands come as plain fields; clicks and shortcuts as one field `payload` with JSON.
        form = parse_qs(text, keep_blank_values=True, max_num_fields=100)
        return bool(form) and ("payload" not in form or isinstance(json.loads(form["payload"][0]), dict))
    except (ValueError, RecursionError):
        return False


def is_rate_note(text: str, content_type: str) -> bool:
    """Whether Slack reports that it is holding back events (over 30,000 an hour); this is not an event."""
    if content_type.partition(";")[0].strip() != "application/json":
        return False
    return bool(json.loads(text).get("type") == "app_rate_limited")
