"""Turns a cleaned article into a draft case page, for a person to complete; drafts are never shown to users.

Filled in are the framework, signals, settings and versions that the article names, and the case it is probably about.
Judgement is left to the reviewer: the evidence grade is ``reported``, because an article confirms nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from trainmedic.ingest.document import Block, Document
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.pages.case import HEADINGS
from trainmedic.kb.parse.pipeline import parse

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "fix": (
        *("解决", "修复", "方案", "建议", "实践", "规避"),
        *("solution", "fix", "workaround", "resol", "recommend", "best practice"),
    ),
    "cause": (
        *("原因", "根源", "分析", "原理", "排查", "机制"),
        *("cause", "why", "analysis", "mechanism", "diagnos", "investigat"),
    ),
    "symptom": (
        *("背景", "现象", "问题", "描述", "影响"),
        *("symptom", "background", "problem", "issue", "what happened", "overview"),
    ),
    "confirm": (
        *("确认", "验证", "复现", "结论", "总结", "启示"),
        *("confirm", "verif", "reproduc", "conclusion", "summary", "lesson"),
    ),
}
"""Words of an article's headings by the section they begin, tried in this order."""
TO_WRITE = {"en": "To be written by the reviewer.", "zh": "待审核者撰写。"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One draft page. ``digest`` identifies the article's text; ``related`` are the cases it is probably about."""

    id: str
    page: str
    origin: str
    digest: str
    related: tuple[str, ...] = ()


def draft(document: Document, related: Sequence[str] = ()) -> Draft:
    digest = hashlib.sha256(document.text.encode()).hexdigest()
    evidence = parse(f"{document.title}\n{document.text}")
    identity = f"draft-{slug(document, evidence)}-{digest[:8]}"
    front = front_matter(document, evidence, identity, related)
    return Draft(
        id=identity,
        page=f"---\n{front}---\n{body(document)}",
        origin=document.origin,
        digest=digest,
        related=tuple(related),
    )


def front_matter(document: Document, evidence: Evidence, identity: str, related: Sequence[str]) -> str:
    run = evidence.run
    data = {
        "id": identity,
        "title": {"en": document.title, "zh": document.title},
        "kind": "fault",
        "family": "unsorted",
        "frameworks": [run.framework.value] if run.framework else [],
        "algorithms": [run.algorithm.value] if run.algorithm else [],
        "model_families": [run.model_family.value] if run.model_family else [],
        "signals": sorted({signal.kind for signal in evidence.signals}),
        "settings": sorted(name for name, setting in run.settings.items() if setting.option is not None),
        "symptoms": {"en": [document.title], "zh": [document.title]},
        "no_rule": TO_WRITE["en"],
        "evidence": "reported",
        "reviewed": "never",
        "sources": [{"url": document.url or f"file:{document.origin}", "says": "reporter", "note": "ingested article"}],
        "related": list(related),
        "status": "draft",
    }
    filled = {key: value for key, value in data.items() if value not in ([], {}, "")}
    return yaml.safe_dump(filled, allow_unicode=True, sort_keys=False, width=110)


def body(document: Document) -> str:
    """The sections of both languages; the whole article goes into those of its own."""
    texts = sections(document.blocks)
    parts = []
    for language in ("en", "zh"):
        parts.append(f"## {language}\n")
        for heading, name in HEADINGS[language].items():
            text = texts.get(name, "") if language == document.language else ""
            parts.append(f"### {heading}\n\n{text or TO_WRITE[language]}\n")
    return "\n".join(parts)


def sections(blocks: Sequence[Block]) -> Mapping[str, str]:
    """The article's blocks by section. Nothing is lost: an unknown heading stays in the section before it."""
    parts: dict[str, list[str]] = {}
    current = "symptom"
    for block in blocks:
        if block.kind == "heading":
            heading = block.text.casefold()
            current = next(
                (name for name, words in SECTIONS.items() if any(word in heading for word in words)), current
            )
            parts.setdefault(current, []).append(f"**{block.text}**")
        else:
            parts.setdefault(current, []).append(markdown(block))
    return {name: "\n\n".join(lines) for name, lines in parts.items()}


def markdown(block: Block) -> str:
    """One block as Markdown that cannot end the page's structure early."""
    if block.kind == "code":
        return f"```\n{block.text.replace('```', chr(39) * 3)}\n```"
    # A heading in the article must not end the section of the page.
    text = "\\" + block.text if block.text.startswith("#") else block.text
    return f"- {text}" if block.kind == "item" else text


def slug(document: Document, evidence: Evidence) -> str:
    """Latin words of the title, led by the framework."""
    words = _latin_words(document.title)
    lead = (
        [word for word in _latin_words(evidence.run.framework.value) if word not in words]
        if evidence.run.framework
        else []
    )
    return "-".join([*lead, *words][:8]) or "article"


def _latin_words(text: str) -> list[str]:
    letters = (letter if letter.isascii() and letter.isalnum() else " " for letter in text.lower())
    return "".join(letters).split()
