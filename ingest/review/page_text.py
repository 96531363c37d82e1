"""Changes to the text of a page: the published form of a draft, and a case with what a draft adds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from trainmedic.ingest.drafts.draft import PREFIX
from trainmedic.ingest.personal import hidden, hidden_markdown
from trainmedic.kb.identities import Identities, identities_of
from trainmedic.kb.mask import mask
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.page import Page
from trainmedic.kb.pages.case import read_case
from trainmedic.kb.pages.page import read_page


def case_of(text: str) -> tuple[Case, Page]:
    """The case on a page whose file is named after its id. Raises `PageError`."""
    page, front = read_page(text, "page.md")
    named = front.fields(("id",), tuple(front.mapping())).text("id")
    page, front = read_page(text, f"{named}.md")
    return read_case(Path(f"{named}.md"), page, front)


def published_text(text: str, today: date) -> str:
    """The page of a draft as it is published. Raises `PageError`.

    The date of the review is set where there was none, and what identifies persons and machines is hidden.
    """
    case, _ = case_of(text)
    front, checks, body = _split(text)
    front["id"] = case.id.removeprefix(PREFIX)
    front["status"] = "published"
    if not is_date(case.reviewed):
        front["reviewed"] = today.isoformat()
    return _page(front, checks, body)


def merged_text(text: str, addition: Case) -> str:
    """A case's page with the symptoms and sources of a draft's page that it lacks. Raises `PageError`."""
    case, _ = case_of(text)
    front, checks, body = _split(text)
    for language in ("en", "zh"):
        wordings = dict.fromkeys(addition.symptoms.get(language, ()))
        present = {line.casefold() for line in case.symptoms.get(language, ())}
        listed = front.setdefault("symptoms", {}).setdefault(language, [])
        listed.extend(line for line in wordings if line.casefold() not in present)
    addresses = {source.url for source in case.sources}
    front["sources"].extend(
        {"url": source.url, "says": source.says, "note": source.note}
        for source in addition.sources
        if source.url not in addresses
    )
    return _page(front, checks, body)


def is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _split(text: str) -> tuple[dict[str, Any], str, str]:
    """The front matter, its scalars as texts; its last field, the checks, as it is written; and the body."""
    page, _ = read_page(text, "page.md")
    lines = page.text.split("\n")
    fields, checks, listed = "\n".join((*lines[1 : page.body_line - 2], "")).partition("checks:\n")
    return yaml.load(fields, Loader=yaml.BaseLoader), checks + listed, "\n".join(lines[page.body_line - 1 :])


def _page(front: Mapping[str, Any], checks: str, body: str) -> str:
    """The page, without the secrets and persons that an edit may have brought in."""
    known = identities_of((*_texts(front), checks, body))
    front = _without_persons(front, known)
    body = hidden_markdown(mask(body).text, known)
    checks = hidden(mask(checks).text, known)
    return f"---\n{yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=110)}{checks}---\n{body}"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def _without_persons(value: Any, known: Identities) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_persons(part, known) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_persons(part, known) for part in value]
    text = mask(value).text
    # The address of a source leads to it, also on a machine of the team.
    return text if text.startswith(("https://", "http://")) else hidden(text, known)
