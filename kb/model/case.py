"""One incident or artefact we know, as its page says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.model.report import Reference, Text

EVIDENCE_GRADES = ("reproduced", "maintainer", "reporter", "source-read", "reported")
"""Best first: run and seen here; a maintainer said so; the reporter said so; read in the source; only claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """Something people try or say that does not help, and why not."""

    claim: Text
    why: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The fact that would tell this case from its look-alikes. ``fact`` as in `kb.model.report.Missing`."""

    fact: str
    ask: Text
    why: Text


Level = Literal["mechanism", "origin", "case", "defect"]
"""How much a cause commits to: what is going on, what it comes from, the incident with its versions, one defect of one
package."""

Verdict = Literal["answered", "need_input", "not_in_kb", "no_fault", "explained"]
"""The verdict of an answer; ``explained``: the question was about no incident."""
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cause.

    ``level`` is a `Level`: a page of its own, a known defect of a package, or a mechanism or an origin of one that
    stands for itself where no case covers the incident. ``kind`` is ``fault``, or ``artefact`` where nothing is wrong
    with the run. ``affected``/``fixed`` map package → version range / first fixed version.
    ``symptoms`` holds how users word it, per language; ``signals`` the signal kinds it shows; ``settings`` the
    canonical settings involved, or the names in code that a known defect touches.
    ``sections`` maps language → section name (symptom, cause, fix, confirm) → Markdown.
    """

    id: str
    title: Text
    kind: str
    family: str  # class of failure, see kb/causes/README.md
    frameworks: tuple[str, ...]
    evidence: str
    reviewed: str  # the date
    sections: Mapping[str, Mapping[str, str]]
    sources: tuple[Reference, ...]
    algorithms: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    model_families: tuple[str, ...] = ()
    affected: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    fixed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    effect: str = ""  # the worst that it does, where a release ended it: see `kb.audit.defect.Effect`
    signals: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    symptoms: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    rules: tuple[str, ...] = ()
    no_rule: str = ""  # why no rule can detect it, where rules is empty
    refutations: tuple[Refutation, ...] = ()
    ask: tuple[Question, ...] = ()
    related: tuple[str, ...] = ()
    reviewed_by: str = "author"  # author | second reader
    secondary: bool = False  # explains what is shown, not why: yields to any other plausible case
    status: str = "published"  # published | draft (drafts are never shown)
    level: Level = "case"
    languages: tuple[str, ...] = ("en", "zh")  # in which it is written

    def section(self, name: str, language: str) -> str:
        """One section's Markdown in ``language`` (English for anything but ``zh``), or in the only one there is."""
        wanted = "zh" if language == "zh" else "en"
        return self.sections.get(wanted if wanted in self.languages else self.languages[0], {}).get(name, "")
