"""Where a diagnosis is sent: terminal, Slack channel, webhook. A failed post is reported and otherwise ignored."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from trainmedic.kb.identities import identities_of, mask_identities, masked_values
from trainmedic.kb.mask import mask
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.kb.serialization import plain, to_json
from trainmedic.service.observers.formats import (
    CHARACTERS,
    Alert,
    Format,
    address_of,
    alertmanager_alerts,
    format_of,
    message,
    pagerduty_event,
)
from trainmedic.service.storage.history import OURS
from trainmedic.ui.present.bot_text import BotExtras, pages
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.slack import Extras, is_button, render_answer
from trainmedic.ui.present.slack_text import escape
from trainmedic.ui.present.stored import answer_from, with_sections
from trainmedic.ui.watch.watcher import Diagnosis

Notifier = Callable[[Diagnosis], None]
NAME = "trainmedic"
SLACK = "https://slack.com/api/"
TIMEOUT_S = 10.0


def headline(diagnosis: Diagnosis) -> str:
    """``trainmedic: train.log, step 12: a loss is NaN``."""
    language, alarm = diagnosis.answer.language, diagnosis.alarm
    signs = [KINDS[kind].get(language) if kind in KINDS else kind for kind in alarm.kinds[:3]]
    place = ""
    if alarm.step is not None:
        place = messages("watch.step", language, step=alarm.step)
    elif alarm.row is not None:
        place = messages("watch.row", language, row=alarm.row)
    return messages("watch.headline", language, name=name_of(diagnosis), place=place, signs="; ".join(signs))


def name_of(diagnosis: Diagnosis) -> str:
    """The log's name in one line, masked: people put keys into paths too."""
    return mask("".join(letter if letter.isprintable() else " " for letter in diagnosis.name)).text


def for_others(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis without the names of people and machines: a channel has more readers than a terminal."""
    known = identities_of((diagnosis.name, to_json(diagnosis.answer).replace("\\n", "\n")))
    body = masked_values(plain(diagnosis.answer), known, OURS)
    answer = answer_from(body) if isinstance(body, dict) else diagnosis.answer
    return replace(diagnosis, answer=answer, name=mask_identities(diagnosis.name, known))


def to_terminal(diagnosis: Diagnosis) -> None:
    """The headline and the answer, on standard error: standard output is the run's."""
    rule = "─" * 72
    sys.stderr.write(f"\n{rule}\n{headline(diagnosis)}\n{rule}\n{diagnosis.answer.answer}\n{rule}\n")
    sys.stderr.flush()


def all_of(notifiers: Sequence[Notifier]) -> Notifier:
    def notify(diagnosis: Diagnosis) -> None:
        for notifier in notifiers:
            notifier(diagnosis)

    return notify


def to_slack(
    channel: str, token: str, base_url: str = SLACK, *, public_url: str = "", buttons: bool = False
) -> Notifier:
    """Posts to a channel with a bot token (scope ``chat:write``): the headline, and the answer in its thread.

    ``buttons`` only if the service that gave the answer runs the bot that handles the clicks.
    """

    def notify(diagnosis: Diagnosis) -> None:
        diagnosis = for_others(diagnosis)
        shared = {"channel": channel, "unfurl_links": False, "unfurl_media": False}
        headers = {"Authorization": f"Bearer {token}"}
        first = _post(f"{base_url}chat.postMessage", {**shared, "text": escape(headline(diagnosis))}, headers)
        for reply in render_answer(with_sections(diagnosis.answer), Extras(public_url=public_url)):
            # Clicks would reach a bot that does not know this answer.
            blocks = [block for block in reply.blocks if buttons or not is_button(block)]
            body = {**shared, "thread_ts": first.get("ts"), "text": reply.text, "blocks": blocks}
            _post(f"{base_url}chat.postMessage", body, headers)

    return _reporting_errors(f"Slack {channel}", notify)


def to_webhook(url: str, kind: Format | None = None) -> Notifier:
    """Posts ``{event: "diagnosed", name, step, signs, text, answer}`` as JSON, or what another receiver wants.

    ``kind`` is by default the one that the URL shows.
    """
    wanted: Format = kind or format_of(url)

    def notify(diagnosis: Diagnosis) -> None:
        diagnosis = for_others(diagnosis)
        if wanted in CHARACTERS:
            for text in _texts(diagnosis, CHARACTERS[wanted]):
                _post(url, message(wanted, text), {})
            return
        if wanted == "pagerduty":
            _post(address_of(wanted, url), pagerduty_event(url, _alert(diagnosis)), {})
            return
        if wanted == "alertmanager":
            _post(url, alertmanager_alerts(_alert(diagnosis), datetime.now(UTC).isoformat()), {})
            return
        body = {
            "event": "diagnosed",
            "name": name_of(diagnosis),
            "step": diagnosis.alarm.step,
            "signs": list(diagnosis.alarm.kinds),
            "text": headline(diagnosis),
            "answer": plain(diagnosis.answer),
        }
        _post(url, body, {})

    return _reporting_errors("webhook", notify)


def _alert(diagnosis: Diagnosis) -> Alert:
    causes = diagnosis.answer.causes if diagnosis.answer.verdict == "answered" else ()
    return Alert(
        key=diagnosis.answer.id,
        summary=headline(diagnosis),
        source=name_of(diagnosis),
        severity="critical",
        labels={"cause": causes[0].case_id} if causes else {},
        details={"cause": causes[0].title if causes else "", "answer": diagnosis.answer.answer},
    )


def _texts(diagnosis: Diagnosis, limit: int) -> list[str]:
    """A robot may be restricted to messages with a keyword, so each holds the name that the headline begins with."""
    texts = pages(with_sections(diagnosis.answer), BotExtras(), limit)
    return [f"**{headline(diagnosis)}**", *(text if NAME in text else f"{text}\n\n{NAME}" for text in texts)]


def _post(url: str, body: object, headers: Mapping[str, str]) -> Mapping[str, Any]:
    """The response as a JSON object, empty if it is something else. Raises `PostError`."""
    import httpx

    content = json.dumps(body, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json; charset=utf-8", **headers}
    try:
        response = httpx.post(url, content=content, headers=headers, timeout=TIMEOUT_S)
        reply = response.json() if "json" in response.headers.get("content-type", "") else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise PostError(type(error).__name__) from None  # its message may hold the URL, which may be a secret
    if not response.is_success:
        raise PostError(f"HTTP {response.status_code}")
    if not isinstance(reply, dict):
        return {}
    if reply.get("ok") is False:  # Slack refuses with status 200
        raise PostError(str(reply.get("error", "refused")))
    if code := reply.get("code") or reply.get("errcode"):  # and so do Feishu and DingTalk
        raise PostError(f"code {code}")
    return reply


class PostError(Exception):
    """The receiver did not accept the post."""


def _reporting_errors(where: str, notify: Notifier) -> Notifier:
    def guarded(diagnosis: Diagnosis) -> None:
        try:
            notify(diagnosis)
        except Exception as error:  # a failed notification must not end the run
            why = str(error) if isinstance(error, PostError) else type(error).__name__
            sys.stderr.write(f"{messages('watch.not_sent', diagnosis.answer.language, where=where, why=why)}\n")

    return guarded
