"""Changes that a user reports to have made: "upgraded to 0.3.5", "I switched to ZeRO-2 and it is still NaN". Pure."""

from __future__ import annotations

import re

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.parse.readers.versions import PACKAGES, package
from trainmedic.service.dialogue.supposition import changes_in
from trainmedic.service.dialogue.vocabulary import phrases

MAX_READ = 2_000
"""Code points of a message that are read."""
MAX_CLAUSE = 200
_CLAUSES = regex(r"[,;!?，。；！？\n]+|\.(?=\s|$)|\bbut\b|\band (?=it|still|now|the)")
# A version behind a verb or the word "version", with at most one name and the old version between them.
_VERSION = regex(
    r"(?:(?:(?P<owner>[A-Za-z][\w-]{0,20})\s)?version|grad\w{1,3}|updated?|updating|bumped|moved|now on|"
    r"版本|升级|更新|降级|升|降)\s?(?P<name>[A-Za-z][\w-]{1,20}(?=\s))?"
    r"[\s:=是为]{0,3}(?:(?:from|从)\s?v?[\d.]{1,14}\s)?(?:to|is|at|到了?|成)?[\s:=]{0,3}v?"
    r"(?P<version>\d{1,4}(?:\.\d{1,4}){1,3})(?![\w.]*\w)",
    re.IGNORECASE,
)
_NO_NAMES = frozenset({"it", "to", "is", "from", "at", "the", "on", "my", "its", "our", "which", "installed"})


def reported_changes(text: str, framework: str | None, glossary: Glossary, read: Read) -> dict[str, str]:
    """The settings, options and packages that a follow-up reports, with their present values.

    A version without a name is that of the framework.
    """
    text = text[:MAX_READ]
    states = any(letter.isdigit() for letter in text) and phrases("worked_with").search(text) is None
    changes = _stated_versions(text, read) if states else {}
    for clause in _CLAUSES.split(text):
        if not clause or len(clause) > MAX_CLAUSE:
            continue
        for match in _VERSION.finditer(clause):
            name = match["name"] or match["owner"]
            if name is None or name.lower() in _NO_NAMES:
                name = framework
            if name is not None and package(name) in PACKAGES:
                changes[package(name)] = match["version"]
        if phrases("reported_change").search(clause):
            changes |= {name: value for name, value in changes_in(clause, glossary).items() if name not in changes}
    return changes


def _stated_versions(text: str, read: Read) -> dict[str, str]:
    return {fact.package: fact.exact for fact in read(text, ()).versions.values() if fact.exact is not None}
