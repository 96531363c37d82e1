"""The formats that receivers of webhooks want: group robots of chat platforms, pagers, and our own JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import parse_qs, urlsplit, urlunsplit

Format: TypeAlias = Literal["json", "slack", "feishu", "dingtalk", "discord", "pagerduty", "alertmanager"]
FORMATS: tuple[Format, ...] = get_args(Format)
CHARACTERS: Mapping[str, int] = {"slack": 11_000, "feishu": 7_000, "dingtalk": 5_500, "discord": 1_900}
"""Longest text of one message: Slack's Markdown blocks take 12,000 characters, a Feishu card 30 KB, a DingTalk message
20,000 bytes (a Chinese character takes three), a Discord message 2,000 characters."""
TITLE = 40
SUMMARY = 1024
"""PagerDuty's longest summary."""
SUPPRESS_EMBEDS = 1 << 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What a pager is told. ``key`` is the same for everything about one failure."""

    key: str
    summary: str
    source: str
    severity: Literal["critical", "error", "warning", "info"]
    resolved: bool = False
    link: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)


def format_of(url: str) -> Format:
    """The format of a receiver, by the address that its platform gives to webhooks; our own for any other."""
    parts = urlsplit(url)
    host, path = parts.hostname or "", parts.path
    if host == "hooks.slack.com":
        return "slack"
    if path.startswith("/open-apis/bot/v2/hook/"):
        return "feishu"
    if path == "/robot/send":
        return "dingtalk"
    if path.startswith("/api/webhooks/"):
        return "discord"
    if host.endswith("pagerduty.com") and path == "/v2/enqueue":
        return "pagerduty"
    return "alertmanager" if path.endswith("/api/v2/alerts") else "json"


def message(kind: Format, markdown: str) -> dict[str, Any]:
    """A message of one of the formats with a text, which are those in `CHARACTERS`."""
    makers = {
        "slack": slack_message,
        "feishu": feishu_message,
        "dingtalk": dingtalk_message,
        "discord": discord_message,
    }
    return makers[kind](markdown)


def feishu_message(markdown: str) -> dict[str, Any]:
    return {"msg_type": "interactive", "card": feishu_card(markdown)}


def feishu_card(markdown: str) -> dict[str, Any]:
    """A card with one Markdown text, in the card format 2.0, which knows code blocks and headings."""
    # Without mentions: `<at id=all>` in a pasted text would notify a whole group.
    inert = markdown.replace("<at", "<\u200bat").replace("<person", "<\u200bperson")
    return {
        "schema": "2.0",
        "config": {"update_multi": True},
        "body": {"elements": [{"tag": "markdown", "content": inert}]},
    }


def dingtalk_message(markdown: str) -> dict[str, Any]:
    """A Markdown message; its title is shown in notifications only."""
    return {"msgtype": "markdown", "markdown": {"title": title_of(markdown), "text": markdown}}


def discord_message(markdown: str) -> dict[str, Any]:
    """A message that mentions nobody and unfolds no link."""
    return {"content": markdown, "allowed_mentions": {"parse": []}, "flags": SUPPRESS_EMBEDS}


def slack_message(markdown: str) -> dict[str, Any]:
    for mark in "!@#":  # <!channel> would notify everybody
        markdown = markdown.replace(f"<{mark}", f"<\u200b{mark}")
    title = title_of(markdown).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": title, "blocks": [{"type": "markdown", "text": markdown}], "unfurl_links": False}


def title_of(markdown: str) -> str:
    """The first line with words, without Markdown's marks."""
    first = next((line.strip("#>*-` ") for line in markdown.splitlines() if line.strip("#>*-` ")), "trainmedic")
    return first.replace("*", "")[:TITLE]


def pagerduty_event(url: str, alert: Alert) -> dict[str, Any]:
    """An event of the Events API v2; the ``routing_key`` is a parameter of the URL.

    https://developer.pagerduty.com/docs/events-api-v2-overview
    """
    event: dict[str, Any] = {
        "routing_key": "".join(parse_qs(urlsplit(url).query).get("routing_key", [])),
        "event_action": "resolve" if alert.resolved else "trigger",
        "dedup_key": alert.key,
        "client": "trainmedic",
        "payload": {
            "summary": alert.summary[:SUMMARY],
            "source": alert.source,
            "severity": alert.severity,
            "custom_details": dict(alert.details),
        },
    }
    return {**event, "links": [{"href": alert.link, "text": "trainmedic"}]} if alert.link else event


def alertmanager_alerts(alert: Alert, at: str) -> list[dict[str, Any]]:
    """What Prometheus sends to Alertmanager's ``/api/v2/alerts``; ``at`` is the time in RFC 3339."""
    labels = {"alertname": "trainmedic", "severity": alert.severity, "instance": alert.source, **alert.labels}
    item: dict[str, Any] = {
        "labels": {**labels, "key": alert.key},
        "annotations": {"summary": alert.summary, **{name: str(value) for name, value in alert.details.items()}},
        "endsAt" if alert.resolved else "startsAt": at,
    }
    return [{**item, "generatorURL": alert.link} if alert.link else item]


def address_of(kind: Format, url: str) -> str:
    """Where to post: PagerDuty's key is sent in the body alone."""
    return urlunsplit(urlsplit(url)._replace(query="")) if kind == "pagerduty" else url
