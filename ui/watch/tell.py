"""Where a diagnosis goes: the terminal, a Slack channel, a webhook. A failure to post is said and harms nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmedic.kb.mask import mask
from trainmedic.kb.model.report import Text
from trainmedic.kb.parse.signal_kinds import KINDS
from trainmedic.kb.serialization import plain
from trainmedic.ui.present.slack_text import escape
from trainmedic.ui.watch.watcher import Diagnosis

Tell = Callable[[Diagnosis], None]
SLACK = "https://slack.com/api/"
TIMEOUT_S = 10.0
HEAD = Text(en="trainmedic: {name}{place}: {signs}", zh="trainmedic：{name}{place}：{signs}")
AT = Text(en=", step {step}", zh="，第 {step} 步")
IN_ROW = Text(en=", row {row} of the log", zh="，日志第 {row} 行数据")
NOT_SENT = Text(en="trainmedic: not sent to {where}: {why}", zh="trainmedic：未能发送到 {where}：{why}")


def headline(diagnosis: Diagnosis) -> str:
    """``trainmedic: train.log, step 12: a loss is NaN``."""
    language, found = diagnosis.answer["language"], diagnosis.alarm
    signs = [KINDS[kind].get(language) if kind in KINDS else kind for kind in found.kinds[:3]]
    place = ""
    if found.step is not None:
        place = AT.get(language).format(step=found.step)
    elif found.row is not None:
        place = IN_ROW.get(language).format(row=found.row)
    return HEAD.get(language).format(name=name_of(diagnosis), place=place, signs="; ".join(signs))


def name_of(diagnosis: Diagnosis) -> str:
    """The log's name in one line, masked: people put keys into paths too."""
    return mask("".join(each if each.isprintable() else " " for each in diagnosis.name)).text


def to_terminal(diagnosis: Diagnosis) -> None:
    """The headline and the answer, on standard error: standard output is the run's."""
    rule = "─" * 72
    sys.stderr.write(f"\n{rule}\n{headline(diagnosis)}\n{rule}\n{diagnosis.answer['answer']}\n{rule}\n")
    sys.stderr.flush()


def all_of(tells: Sequence[Tell]) -> Tell:
    """Tells all of them, in order."""

    def tell(diagnosis: Diagnosis) -> None:
        for each in tells:
            each(diagnosis)

    return tell


def to_slack(channel: str, token: str, base_url: str = SLACK, *, public_url: str = "", buttons: bool = False) -> Tell:
    """Posts to a channel with a bot token (scope ``chat:write``): the headline, the answer in its thread.

    ``buttons`` only where the service that gave the answer has a bot of its own to hear of clicks.
    """

    def tell(diagnosis: Diagnosis) -> None:
        from trainmedic.ui.present.slack import Extras, is_button, messages

        shared = {"channel": channel, "unfurl_links": False, "unfurl_media": False}
        headers = {"Authorization": f"Bearer {token}"}
        first = _post(f"{base_url}chat.postMessage", {**shared, "text": escape(headline(diagnosis))}, headers)
        for reply in messages(diagnosis.answer, Extras(public_url=public_url)):
            blocks = [block for block in reply.blocks if buttons or not is_button(block)]
            body = {**shared, "thread_ts": first.get("ts"), "text": reply.text, "blocks": blocks}
            _post(f"{base_url}chat.postMessage", body, headers)

    return _safely(f"Slack {channel}", tell)


def to_webhook(url: str) -> Tell:
    """Posts ``{event: "diagnosed", name, step, signs, answer}`` as JSON."""

    def tell(diagnosis: Diagnosis) -> None:
        body = {
            "event": "diagnosed",
            "name": name_of(diagnosis),
            "step": diagnosis.alarm.step,
            "signs": list(diagnosis.alarm.kinds),
            "text": headline(diagnosis),
            "answer": plain(diagnosis.answer),
        }
        _post(url, body, {})

    return _safely("webhook", tell)


def _post(url: str, body: object, headers: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object answered, empty where it is none. Raises `Refused`."""
    import httpx

    content = json.dumps(body, ensure_ascii=False).encode()
    sent = {"Content-Type": "application/json; charset=utf-8", **headers}
    try:
        answer = httpx.post(url, content=content, headers=sent, timeout=TIMEOUT_S)
        found = answer.json() if "json" in answer.headers.get("content-type", "") else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise Refused(type(error).__name__) from None  # its message may hold the address, which may be a secret
    if not answer.is_success:
        raise Refused(f"HTTP {answer.status_code}")
    if not isinstance(found, dict):
        return {}
    if found.get("ok") is False:  # Slack's refusals are successes to HTTP
        raise Refused(str(found.get("error", "refused")))
    return found


class Refused(Exception):
    """Nobody took it."""


def _safely(where: str, tell: Tell) -> Tell:
    """The same, with what goes wrong said on standard error."""

    def told(diagnosis: Diagnosis) -> None:
        try:
            tell(diagnosis)
        except Exception as error:  # a run must not end because nobody could be told of it
            why = str(error) if isinstance(error, Refused) else type(error).__name__
            sys.stderr.write(f"{NOT_SENT.get(diagnosis.answer['language']).format(where=where, why=why)}\n")

    return told
