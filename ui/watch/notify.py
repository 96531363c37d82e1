"""Where a diagnosis is sent: terminal, webhook, service of apprise. A failed post is reported, otherwise ignored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from trainmedic.kb.identities import identities_of, mask_identities, masked_values
from trainmedic.kb.mask import mask
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.kb.serialization import plain, to_json
from trainmedic.service.storage.history import OURS
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.stored import answer_from
from trainmedic.ui.watch.destination import NotDelivered, Notice, destination
from trainmedic.ui.watch.watcher import Diagnosis

Notifier = Callable[[Diagnosis], None]


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


def to_webhook(url: str) -> Notifier:
    """Posts ``{event: "diagnosed", name, step, signs, text, answer}``, or a message to a service that apprise knows.

    Raises `InvalidSettings`.
    """
    deliver = destination(url)

    def notice_of(diagnosis: Diagnosis) -> Notice:
        title = headline(diagnosis)
        body = {
            "event": "diagnosed",
            "name": name_of(diagnosis),
            "step": diagnosis.alarm.step,
            "signs": list(diagnosis.alarm.kinds),
            "text": title,
            "answer": plain(diagnosis.answer),
        }
        return Notice(body=body, title=title, text=diagnosis.answer.answer)

    def notify(diagnosis: Diagnosis) -> None:
        try:
            deliver(notice_of(for_others(diagnosis)))
        except Exception as error:  # a failed notification must not end the run
            why = str(error) if isinstance(error, NotDelivered) else type(error).__name__
            sys.stderr.write(f"{messages('watch.not_sent', diagnosis.answer.language, where='webhook', why=why)}\n")

    return notify
