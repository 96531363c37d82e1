"""Who answers what a watch finds: this machine's own knowledge, or a service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.intake import decode
from trainmedic.service.settings import Settings
from trainmedic.ui.watch.watcher import Ask, Wire

Spoken = Literal["auto", "en", "zh"]


def here(settings: Settings, language: Spoken) -> Ask:
    """The knowledge installed here, loaded when it is first needed: a run that goes well costs nothing."""
    from trainmedic.kb.serialization import plain
    from trainmedic.service.advisor import Advisor
    from trainmedic.service.question.request import Ask as Question

    loaded: list[Advisor] = []

    def ask(attachments: Sequence[Attachment]) -> Wire:
        from trainmedic.ui.app import build_advisor

        if not loaded:
            loaded.append(build_advisor(settings, with_history=False))
        found = plain(loaded[0].ask(Question(question="", attachments=tuple(attachments), language=language)))
        assert isinstance(found, dict)
        return found

    return ask


def at(url: str, key: str | None, language: Spoken) -> Ask:
    """A service at ``url``. Where it does not answer, `ServiceError` is raised."""

    def ask(attachments: Sequence[Attachment]) -> Wire:
        from trainmedic.ui.client import Client

        # The service masks what it is sent; a secret need not leave this machine for that.
        texts = {mask(each.name).text: mask(text_of(each)).text for each in attachments}
        with Client(url, api_key=key) as client:
            return client.ask("", texts, language=language).raw

    return ask


def first_of(*asked: Ask) -> Ask:
    """The first that answers. Raises what the last one raises."""

    def ask(attachments: Sequence[Attachment]) -> Wire:
        for each in asked[:-1]:
            try:
                return each(attachments)
            except Exception:  # whatever is wrong with it, the next one knows the same cases
                continue
        return asked[-1](attachments)

    return ask


def text_of(attachment: Attachment) -> str:
    """An attachment's text; binary content as it can be shown."""
    if isinstance(attachment.content, str):
        return attachment.content
    decoded = decode(attachment.content)
    return decoded[0] if decoded is not None else attachment.content.decode("utf-8", "replace")


def report(attachments: Sequence[Attachment], settings: Settings, language: Literal["en", "zh"]) -> tuple[str, int]:
    """What the rules say of a configuration, for a terminal, and how many errors there are."""
    from trainmedic.service.composition.views import report_view
    from trainmedic.ui.checking import examine
    from trainmedic.ui.present import text

    evidence, found = examine(attachments, settings.extra_pages)
    if not found.fired:
        return "", 0
    errors = sum(finding.severity.value == "error" for finding in found.fired)
    return text.report(report_view(evidence, found, language), language, patches=True), errors
