"""The sources of a watched run's diagnoses: the knowledge installed here, or a service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.text.compressed import expand
from trainmedic.kb.parse.text.intake import decode
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answer.views import report_view
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.ui.checking import examine
from trainmedic.ui.client import Client, ServiceError
from trainmedic.ui.present import text
from trainmedic.ui.present.messages import messages

if TYPE_CHECKING:
    from trainmedic.service.advisor import Advisor

Diagnose = Callable[[Sequence[Attachment]], Answer]
AnswerLanguage = Literal["auto", "en", "zh"]


def source(
    load_advisor: Callable[[], Advisor], language: AnswerLanguage, server: str | None, key: str | None
) -> Diagnose:
    """The service at ``server`` if given, and the knowledge installed here if there is none or it fails."""
    installed = in_process(load_advisor, language)
    return with_fallback(server, by_service(server, key, language), installed) if server else installed


def in_process(load_advisor: Callable[[], Advisor], language: AnswerLanguage) -> Diagnose:
    """The knowledge installed here, loaded on first use: a healthy run costs nothing."""
    advisor = cache(load_advisor)

    def diagnose(attachments: Sequence[Attachment]) -> Answer:
        return advisor().ask(Ask(question="", attachments=tuple(attachments), language=language))

    return diagnose


def by_service(url: str, key: str | None, language: AnswerLanguage) -> Diagnose:
    """A service at ``url``. Its failures raise `ServiceError`."""

    def diagnose(attachments: Sequence[Attachment]) -> Answer:
        with Client(url, api_key=key) as client:
            return client.ask("", masked_texts(attachments), language=language)

    return diagnose


def masked_texts(attachments: Sequence[Attachment]) -> dict[str, str]:
    """The attachments for a service, which masks its input too: a secret need not leave this machine for that."""
    return {mask(attachment.name).text: mask(text_of(attachment)).text for attachment in attachments}


def with_fallback(server: str, first: Diagnose, second: Diagnose) -> Diagnose:
    """Asks the second one if the service fails, and says so on standard error."""

    def diagnose(attachments: Sequence[Attachment]) -> Answer:
        try:
            return first(attachments)
        except Exception as error:  # the installed knowledge has the same cases, whatever is wrong with the service
            why = str(error) if isinstance(error, ServiceError) else type(error).__name__
            answer = second(attachments)
            sys.stderr.write(mask(messages("watch.fallback", answer.language, server=server, why=why)).text + "\n")
            return answer

    return diagnose


def text_of(attachment: Attachment) -> str:
    """An attachment's text, unpacked if it is compressed; undecodable bytes are replaced."""
    if isinstance(attachment.content, str):
        return attachment.content
    expanded = expand(attachment.content)
    content = attachment.content if expanded is None else expanded.content
    decoded = decode(content)
    return decoded[0] if decoded is not None else content.decode("utf-8", "replace")


def report(attachments: Sequence[Attachment], settings: Settings, language: Literal["en", "zh"]) -> tuple[str, int]:
    """The rules' report on a configuration as terminal text, empty if none fired, and the number of errors."""
    evidence, findings = examine(attachments, settings.extra_pages)
    if not findings.fired:
        return "", 0
    errors = sum(finding.severity.value == "error" for finding in findings.fired)
    return text.report(report_view(evidence, findings, language), language, patches=True), errors
