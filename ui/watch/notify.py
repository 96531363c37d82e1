"""Where a diagnosis is sent: terminal, Slack channel, webhook. A failed post is reported and otherwise ignored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainmedic.kb.identities import identities_of, mask_identities, masked_values
from trainmedic.kb.mask import mask
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.kb.serialization import plain, to_json
from trainmedic.service.observers.destination import NotDelivered, Notice, destination
from trainmedic.service.storage.history import OURS
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.slack import Extras, is_button, render_answer
from trainmedic.ui.present.slack_text import escape
from trainmedic.ui.present.stored import answer_from, with_sections
from trainmedic.ui.watch.watcher import Diagnosis

Notifier = Callable[[Diagnosis], None]
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
        first = _post(f"{base_url}chat.postMessage", {**shared, "text": escape(headline(diagnosis))}, token)
        for reply in render_answer(with_sections(diagnosis.answer), Extras(public_url=public_url)):
            # Clicks would reach a bot that does not know this answer.
            blocks = [block for block in reply.blocks if buttons or not is_button(block)]
            body = {**shared, "thread_ts": first.get("ts"), "text": reply.text, "blocks": blocks}
            _post(f"{base_url}chat.postMessage", body, token)

    return _reporting_errors(f"Slack {channel}", notify)


def to_webhook(url: str, secret: str = "") -> Notifier:
    """Posts ``{event: "diagnosed", name, step, signs, text, answer}``, or a message to a service that apprise knows.

    Raises `InvalidSettings`.
    """
    receiver = destination(url, secret)

    def notify(diagnosis: Diagnosis) -> None:
        diagnosis = for_others(diagnosis)
        title = headline(diagnosis)
        body = {
            "event": "diagnosed",
            "name": name_of(diagnosis),
            "step": diagnosis.alarm.step,
            "signs": list(diagnosis.alarm.kinds),
            "text": title,
            "answer": plain(diagnosis.answer),
        }
        receiver.send(Notice(event="diagnosed", body=body, title=title, text=diagnosis.answer.answer))

    return _reporting_errors("webhook", notify)


def _post(url: str, body: Mapping[str, object], token: str) -> Mapping[str, Any]:
    """Slack's response. Raises `NotDelivered`."""
    import httpx

    try:
        response = httpx.post(url, json=body, headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S)
        reply = response.json() if response.is_success else {"error": f"HTTP {response.status_code}"}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise NotDelivered(type(error).__name__, again=False) from None
    if not isinstance(reply, dict) or not reply.get("ok"):  # Slack refuses with status 200
        raise NotDelivered(str(dict(reply).get("error", "refused")), again=False)
    return reply


def _reporting_errors(where: str, notify: Notifier) -> Notifier:
    def guarded(diagnosis: Diagnosis) -> None:
        try:
            notify(diagnosis)
        except Exception as error:  # a failed notification must not end the run
            why = str(error) if isinstance(error, NotDelivered) else type(error).__name__
            sys.stderr.write(f"{messages('watch.not_sent', diagnosis.answer.language, where=where, why=why)}\n")

    return guarded
