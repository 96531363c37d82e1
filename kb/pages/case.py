"""The page of a cause, except for its checks → `kb.model.case.Case`. See kb/causes/README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from trainmedic.kb.audit.defect import Effect
from trainmedic.kb.model.case import Case, Question, Refutation
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.pages.anchor import anchors
from trainmedic.kb.pages.page import KNOWLEDGE, Field, Fields, Kind, PageError, chapters, load, page_id, suggestion
from trainmedic.kb.pages.sections import documentation, sections

HEADINGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": MappingProxyType({"Symptom": "symptom", "Cause": "cause", "Fix": "fix", "How to confirm": "confirm"}),
        "zh": MappingProxyType({"现象": "symptom", "原因": "cause", "修复": "fix", "如何确认": "confirm"}),
    }
)
"""Heading on the page → section name, per language. "What does not help" is rendered from the refutations."""
REQUIRED = ("id", "title", "family", "sources")
OPTIONAL = (
    *("kind", "frameworks", "algorithms", "stages", "model_families", "affected", "fixed", "effect", "signals"),
    *("settings", "symptoms", "evidence", "reviewed", "refutations", "ask", "related", "status", "secondary"),
    *("checks", "detected_by", "no_rule"),
)
STATUSES = ("published", "draft")
READERS = ("author", "second reader")
"""Who compared a page with its sources; the second reader is someone who did not write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSet:
    """All cases that loaded, by id, drafts included. ``version`` changes with any page's text."""

    cases: tuple[Case, ...] = ()
    failures: tuple[PageProblem, ...] = ()
    version: str = ""
    pages: Mapping[str, Page] = field(default_factory=lambda: MappingProxyType({}))  # by case id

    @property
    def published(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.status == "published")

    def get(self, case_id: str) -> Case | None:
        return next((case for case in self.cases if case.id == case_id), None)


def load_cases(paths: Iterable[Path] = (), builtin: Path = KNOWLEDGE) -> CaseSet:
    """The built-in cases and those under ``paths`` (folders or single pages), in the order of their ids."""
    loaded = load(CASES, paths, builtin=builtin)
    return CaseSet(
        cases=tuple(loaded.entries.values()), failures=loaded.problems, version=loaded.version, pages=loaded.pages
    )


def is_cause(content: bytes) -> bool:
    """Whether a page is of a cause: it has no origins, as a mechanism has."""
    return b"\norigins:" not in content


def page_fields(front: Field) -> Fields:
    """The fields of a cause's page. Raises `PageError`."""
    return front.fields(REQUIRED, OPTIONAL)


def read_case(path: Path, page: Page, front: Field) -> tuple[Case, Page]:
    """One page's case, and the page without its text, but with the lines of its sections. Raises `PageError`."""
    fields = page_fields(front)
    tuple(anchors(front))  # their shape
    reviewed, _, reader = fields.text("reviewed").partition(", ")
    if reader and reader not in READERS:
        raise fields["reviewed"].error(f"unknown reader {reader!r}{suggestion(reader, READERS)}")
    whole, of_checks = chapters(page)
    texts, lines = documentation(page, sections(whole, tuple(HEADINGS)), HEADINGS)
    checks = [Fields(item.mapping()) for item in fields.items("checks")]
    ids = tuple(check["id"].text() for check in checks if "id" in check)
    for name, chapter in of_checks.items():
        if name not in ids:
            problem = f"no check is called {name!r}{suggestion(name, ids)}"
            raise PageError(PageProblem(page.name, chapter.body_line, problem))
    if "symptoms" not in fields:  # what its checks say is all there is to see of it
        for check in checks:
            for language, found in texts.items() if "message" in check else ():
                said = (check["message"].either().get(language), found.get("cause", ""))
                found["cause"] = "\n\n".join(filter(None, said))
    applies = [Fields(check.mapping("applies")) for check in checks]
    case = Case(
        id=page_id(fields, path),
        title=fields["title"].either(),
        languages=tuple(sorted(fields["title"].mapping())),
        kind=fields.choice("kind", ("fault", "artefact"), "fault"),
        family=fields.text("family"),
        frameworks=fields.texts("frameworks") or tuple(dict.fromkeys(x for f in applies for x in f.texts("framework"))),
        evidence=fields.text("evidence", "source-read"),
        reviewed=reviewed,
        reviewed_by=reader or READERS[0],
        sections=MappingProxyType({language: MappingProxyType(found) for language, found in texts.items()}),
        sources=tuple(item.reference() for item in fields.items("sources")),
        algorithms=fields.texts("algorithms"),
        stages=fields.texts("stages"),
        model_families=fields.texts("model_families"),
        affected=_versions(fields, "affected"),
        fixed=_versions(fields, "fixed"),
        effect=_effect(fields),
        signals=fields.texts("signals"),
        settings=fields.texts("settings"),
        symptoms=symptom_lines(fields["symptoms"]) if "symptoms" in fields else MappingProxyType({}),
        rules=(*ids, *fields.texts("detected_by")),
        no_rule=fields.text("no_rule"),
        refutations=tuple(_refutation(item) for item in fields.items("refutations")),
        ask=tuple(_question(item) for item in fields.items("ask")),
        related=fields.texts("related"),
        secondary=fields.choice("secondary", ("true", "false"), "false") == "true",
        status=fields.choice("status", STATUSES, "published"),
    )
    return case, replace(page, text="", lines=MappingProxyType({**page.lines, **lines}))


CAUSES = KNOWLEDGE / "causes"
CASES = Kind(name="cases", folder=CAUSES, is_one=is_cause, read=read_case)


def _versions(fields: Fields, name: str) -> Mapping[str, str]:
    return MappingProxyType({package: value.text() for package, value in fields.mapping(name).items()})


def _effect(fields: Fields) -> str:
    """Needed where a release ended the cause: an audit lists it, the most harmful first."""
    if ("effect" in fields) != bool(fields.mapping("fixed")):
        raise fields["fixed" if "fixed" in fields else "effect"].error("`fixed` and `effect` stand together")
    return fields["effect"].choice(tuple(Effect)) if "effect" in fields else ""


def symptom_lines(field: Field) -> Mapping[str, tuple[str, ...]]:
    """The lines of each language."""
    fields = field.fields((), ("en", "zh"))
    return MappingProxyType({language: fields.texts(language) for language in ("en", "zh")})


def _refutation(field: Field) -> Refutation:
    fields = field.fields(("claim", "why"), ("source",))
    return Refutation(claim=fields["claim"].either(), why=fields["why"].either())


def _question(field: Field) -> Question:
    fields = field.fields(("fact", "ask", "why"))
    return Question(fact=fields.text("fact"), ask=fields["ask"].either(), why=fields["why"].either())
