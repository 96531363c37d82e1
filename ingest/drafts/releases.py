"""Releases that a write-up calls fixed or broken, held against those of its case and of the known defects whose pull
requests it names. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trainmedic.ingest.drafts.draft import Draft, Mark
from trainmedic.ingest.drafts.likeness import denies
from trainmedic.ingest.drafts.statements import Statement
from trainmedic.kb.audit.defect import DefectSet
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Text
from trainmedic.kb.versions import holds, parse_range, parse_version

_FIXED = regex(
    r"fix(?:ed|es)?\b[^.]{0,20}?\b(?:in|by|since|from)|(?:up|down)grad\w+ (?:\S+ ){0,3}?to"
    r"|(?:resolved|solved|repaired|gone) (?:in|since|with)|install\b|pin\b"
    r"|(?:升级|降级|更新|回退)[^，。]{0,12}?(?:到|至)|修复|已解决",
    re.IGNORECASE,
)


def wrong_releases(
    draft: Draft, said: Sequence[Statement], cases: Mapping[str, Case], defects: DefectSet
) -> Iterator[Mark]:
    ranges = [*_of_case(draft, cases), *_of_defects(draft, defects)]
    for statement in said if ranges else ():
        if statement.kind == "code" or not _FIXED.search(statement.text) or denies(statement.text):
            continue
        for page, package, affected, text in ranges:
            release = parse_version(_release(statement.text, package))
            if release is not None and holds(release, parse_range(affected)) is True:
                yield Mark(kind="release", claim=statement.passage, page=page, statement=text, why=text)


def _release(sentence: str, package: str) -> str | None:
    """The release of a package that a sentence names right behind it."""
    name = re.escape(package).replace(r"\-", "[-_ ]?")
    match = re.search(
        rf"(?<![a-z0-9_-]){name}[\s`]*(?:版本|version|[=><]=)?\s*v?([0-9]+(?:\.[0-9]+)+)", sentence, re.IGNORECASE
    )
    return match[1] if match is not None else None


def _of_case(draft: Draft, cases: Mapping[str, Case]) -> Iterator[tuple[str, str, str, Text]]:
    for identity in draft.related[:1]:
        case = cases.get(identity)
        if case is None:
            continue
        for package, affected in case.affected.items():
            yield case.id, package, affected, _text(package, affected, case.fixed.get(package))


def _of_defects(draft: Draft, defects: DefectSet) -> Iterator[tuple[str, str, str, Text]]:
    text = "\n".join(draft.lines)
    named = set(re.findall(r"(?:#|/pull/|PR )(\d{2,6})", text))
    for defect in defects.all:
        if (
            defect.pull is not None
            and str(defect.pull) in named
            and defect.package in text.casefold()
            and defect.affected
        ):
            yield defect.id, defect.package, defect.affected, _text(defect.package, defect.affected, defect.fixed)


def _text(package: str, affected: str, fixed: str | None) -> Text:
    return Text(
        en=f"Affected: {package} {affected}." + (f" Fixed in {fixed}." if fixed else ""),
        zh=f"受影响的版本：{package} {affected}。" + (f"{fixed} 修复。" if fixed else ""),
    )
