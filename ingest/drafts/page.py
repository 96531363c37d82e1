"""The page of a draft, for a person to complete; drafts are never shown to users.

Judgement is left to the reviewer: the evidence grade is ``reported``, because an article confirms nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.sections import by_section, section_of
from trainmedic.ingest.items import Block
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.pages.case import HEADINGS, REQUIRED

SHORT_HEADING = 12
"""Characters of "Root cause" or "解决方案"."""


def page_of(draft: Draft) -> str:
    if (check := draft.check) is None:
        return f"---\n{front_matter(draft)}---\n{body(draft)}"
    return f"---\n{front_matter(draft)}checks:\n{check.fields}\n---\n{body(draft)}\n{check.chapter}\n"


def front_matter(draft: Draft) -> str:
    language = _language(draft)
    data = {
        "id": draft.id,
        "title": {language: _Edited(draft.title)},
        "kind": "fault",
        "family": "unsorted",
        "frameworks": list(draft.values("framework")),
        "algorithms": list(draft.values("algorithm")),
        "model_families": list(draft.values("model_family")),
        "affected": _version(draft),
        "signals": sorted(set(draft.values("signal"))),
        "settings": sorted(
            {name for value in draft.values("setting") if (name := value.partition(" = ")[0]) in specs()}
        ),
        "symptoms": {language: list(map(_Edited, dict.fromkeys((draft.title, *draft.values("error")))))},
        "evidence": "reported",
        "reviewed": "never",
        "sources": [{"url": draft.url or f"file:{draft.origin}", "says": "reporter", "note": "ingested article"}],
        "related": list(draft.related),
        "status": "draft",
    }
    filled = {key: value for key, value in data.items() if key in REQUIRED or value not in ([], {}, "")}
    return yaml.dump(filled, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110)


class _Edited(str):
    """A text that reviewers rewrite: in quotes from the start, so that a colon in it needs no care."""


class _Dumper(yaml.SafeDumper):
    """Knows `_Edited`, which the dumper of everyone must not."""


_Dumper.add_representer(
    _Edited, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')
)


def _version(draft: Draft) -> Mapping[str, str]:
    """The framework's version that the write-up names: the reviewer makes a range of it."""
    named = (value.rpartition(" ") for value in draft.values("version"))
    return {package: f"=={version}" for package, _, version in named if package in draft.values("framework")}


def body(draft: Draft) -> str:
    """The sections in the article's own language; what it does not say is left to the reviewer."""
    language, texts = _language(draft), sections(draft.blocks)
    parts = (f"### {heading}\n\n{texts[name]}\n" for heading, name in HEADINGS[language].items() if texts.get(name))
    return "\n".join((f"## {language}\n", *parts))


def _language(draft: Draft) -> str:
    return "zh" if draft.language == "zh" else "en"


def sections(blocks: Sequence[Block]) -> Mapping[str, str]:
    """The article's blocks by section. Nothing is lost: an unknown heading stays in the section before it."""
    parts: dict[str, list[str]] = {}
    for section, block in by_section(blocks):
        # A page has its refutations in the front matter, where the reviewer writes them.
        name = "cause" if section == "no_help" else section
        if block.kind != "heading":
            parts.setdefault(name, []).append(markdown(block))
        # A short heading that begins a section says no more than that of the page.
        elif section_of(block.text) is None or name in parts or len(block.text) > SHORT_HEADING:
            parts.setdefault(name, []).append(f"**{block.text}**")
    return {name: "\n\n".join(lines) for name, lines in parts.items()}


def markdown(block: Block) -> str:
    """One block as Markdown that cannot end the page's structure early."""
    if block.kind == "code":
        return f"```\n{block.text.replace('```', chr(39) * 3)}\n```"
    # A heading in the article must not end the section of the page.
    text = "\\" + block.text if block.text.startswith("#") else block.text
    return f"- {text}" if block.kind == "item" else text
