"""The checks of a cause's page → `Rule`. Their examples are read on demand (`kb.pages.examples`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import MappingProxyType, ModuleType

from trainmedic.kb.engine.expressions import Expression, all_of, fact_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.rule import Check, FixSpec, Rule, RuleSet
from trainmedic.kb.engine.vocabulary import Vocabulary, vocabulary
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.model.page import Page
from trainmedic.kb.model.report import Reference, Safety, Severity
from trainmedic.kb.model.run import Scalar
from trainmedic.kb.pages.case import CAUSES, is_cause, page_fields
from trainmedic.kb.pages.condition import condition, signal_kinds, template
from trainmedic.kb.pages.page import (
    KNOWLEDGE,
    Field,
    Fields,
    Kind,
    chapters,
    load,
    one_id,
    page_id,
    suggestion,
)
from trainmedic.kb.versions import parse_range

STATUSES = ("preview", "stable", "deprecated")
CONCLUSIONS = ("fault", "no_fault")
SCOPES = ("framework", "algorithm", "stage", "model_family")
REQUIRED = ("id", "severity", "message")
OPTIONAL = (
    *("title", "status", "since", "concludes", "stops", "symptoms", "applies", "when", "check"),
    *("note", "fix", "sources"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The checks of one page: its own, and the ids of those of other pages that find its cause too."""

    id: str
    rules: tuple[Rule, ...]
    detected_by: tuple[str, ...]


def load_rules(
    paths: Sequence[Path] = (), frameworks: Collection[str | None] | None = None, builtin: Path = KNOWLEDGE
) -> RuleSet:
    """The checks of the built-in pages and of those of further folders. What does not load becomes a failure.

    With ``frameworks`` (those of the runs to be checked; None: not recognised) the built-in pages that only look at
    others are left out: reading all of them takes longer than a check.
    """
    wanted = None if frameworks is None else frozenset(frameworks)
    narrow = None if wanted is None else partial(_narrowed, wanted=wanted)
    loaded = load(CHECKS, paths, narrow, builtin)
    rules: dict[str, Rule] = {}
    problems = list(loaded.problems)
    for checks in loaded.entries.values():
        for rule in checks.rules:
            if rule.id in rules:
                taken = f"id {rule.id!r} is taken by {rules[rule.id].page.name}"
                problems.append(rule.page.problem(taken))
            else:
                rules[rule.id] = rule
    for checks in loaded.entries.values():
        for name in checks.detected_by:
            if name in rules:
                rules[name] = replace(rules[name], cases=(*rules[name].cases, checks.id))
    return RuleSet(rules=tuple(rules[name] for name in sorted(rules)), failures=tuple(problems), version=loaded.version)


def _narrowed(content: bytes, wanted: frozenset[str | None]) -> bytes:
    """The page with the checks blank that list frameworks in brackets, none of them wanted; empty if none is left that
    matters. Does not parse the page."""
    end = content.find(b"\n---", 4)
    start = content.find(b"\nchecks:", 0, end)
    head, *checks = content[start:end].split(b"\n  - id:") if start >= 0 else (b"",)
    kept = [not _is_of_other(check, wanted) for check in checks]
    if not any(kept):
        return content if content.find(b"\ndetected_by:", 0, end) >= 0 else b""
    blocks = (b"\n  - id:" + check for check in checks)
    texts = (text if stays else b"\n" * text.count(b"\n") for text, stays in zip(blocks, kept, strict=True))
    return b"".join((content[:start], head, *texts, content[end:]))


def _is_of_other(check: bytes, wanted: frozenset[str | None]) -> bool:
    applies = re.search(rb"\n    applies:(.*(?:\n {5,}.*)*)", check)
    listed = re.search(rb"framework: *\[([^\]]*)\]", applies[1]) if applies else None
    return listed is not None and wanted.isdisjoint(word.strip() for word in listed[1].decode().split(","))


def read_checks(path: Path, page: Page, front: Field, words: Vocabulary | None = None) -> tuple[Checks, Page]:
    """One page's checks, and the page without its text. Raises `PageError`."""
    fields = page_fields(front)
    words = words or vocabulary()
    _, texts = chapters(page)
    shared = tuple(item.reference() for item in fields.items("sources"))
    rules = tuple(_rule(path, page, fields, item, texts, words, shared) for item in fields.items("checks"))
    return (
        Checks(id=page_id(fields, path), rules=rules, detected_by=fields.texts("detected_by")),
        replace(page, text=""),
    )


CHECKS = Kind(
    name="checks", folder=CAUSES, is_one=is_cause, read=read_checks, unread=("symptoms", "refutations", "ask")
)


def _rule(
    path: Path,
    page: Page,
    of_page: Fields,
    item: Field,
    texts: Mapping[str, Page],
    words: Vocabulary,
    shared: Sequence[Reference],
) -> Rule:
    fields = item.fields(REQUIRED, OPTIONAL)
    name = one_id(fields["id"])
    if ("when" in fields) == ("check" in fields):
        raise fields["id"].error(f"the check {name!r} has either 'when' or 'check'")
    has_check = "check" in fields
    scopes, versions = _applies(fields)
    severity = Severity(fields["severity"].choice(tuple(Severity)))
    return Rule(
        id=name,
        family=path.parent.name,
        title=(fields if "title" in fields else of_page)["title"].either(),
        severity=severity,
        status=fields.choice("status", STATUSES, "stable"),
        since=fields.text("since"),
        concludes=fields.choice("concludes", CONCLUSIONS, "fault"),
        stops=fields.choice("stops", ("start", ""), "") == "start",
        symptoms=signal_kinds(fields, "symptoms", words) if "symptoms" in fields else of_page.texts("signals"),
        applies=scopes,
        versions=versions,
        condition=None if has_check else _joined_condition(fields["when"], versions, words),
        check=_check(fields["check"], path) if has_check else None,
        message=template(fields["message"], words, has_check),
        note=fields["note"].either() if "note" in fields else None,
        fixes=tuple(_fix(item, words, has_check, severity) for item in fields.items("fix")),
        cases=(path.stem,),
        sources=_sources(fields, shared),
        when="" if has_check else fields["when"].raw,
        page=_place(page, item, fields, texts.get(name)),
    )


def _place(page: Page, item: Field, fields: Fields, chapter: Page | None) -> Page:
    """The check's chapter, and the lines of its fields."""
    lines = MappingProxyType({"": item.line, **{name: field.line for name, field in fields.by_name.items()}})
    return replace(chapter or Page(name=page.name, body_line=item.line, before=item.line - 1), lines=lines)


def _sources(fields: Fields, shared: Sequence[Reference]) -> tuple[Reference, ...]:
    own = tuple(item.reference() for item in fields.items("sources"))
    known = {source.url for source in own}
    return (*own, *(source for source in shared if source.url not in known))


def _applies(fields: Fields) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
    if "applies" not in fields:
        return MappingProxyType({}), MappingProxyType({})
    applies = fields["applies"].fields((), (*SCOPES, "versions"))
    scopes = {key: applies.texts(key) for key in SCOPES if key in applies}
    for key, listed in scopes.items():
        if not listed:
            raise applies[key].error("must not be an empty list")
    versions = {}
    for package, value in applies.mapping("versions").items():
        try:
            parse_range(value.text())
        except ValueError as error:
            raise value.error(str(error)) from None
        versions[package] = value.text()
    return MappingProxyType(scopes), MappingProxyType(versions)


def _joined_condition(when: Field, versions: Mapping[str, str], words: Vocabulary) -> Expression:
    ranges = [
        fact_expression(f'version("{package}", "{spec}")', ("version", package, spec))
        for package, spec in versions.items()
    ]
    value = when.typed()
    if value is True:
        return all_of(*ranges) if ranges else condition(when, words, "True")
    if not isinstance(value, str):
        raise when.error("must be a condition, or true")
    return all_of(condition(when, words, value), *ranges)


def _fix(entry: Field, words: Vocabulary, has_check: bool, severity: Severity) -> FixSpec:
    fields = entry.fields(("safety",), ("set", "unset", "upgrade", "text", "when", "alternative"))
    safety = Safety(fields["safety"].choice(tuple(Safety)))
    changes: dict[str, Scalar | Expression] = {}
    for name, value in fields.mapping("set").items():
        if name not in words.settings:
            raise value.error(f"unknown setting {name!r}{suggestion(name, words.settings)}")
        given = value.typed()
        computed = isinstance(given, str) and given.startswith("{") and given.endswith("}")
        changes[name] = condition(value, words, str(given)[1:-1]) if computed else given
    unset: tuple[str, ...] = ()
    if "unset" in fields:
        unset = fields.texts("unset") if fields["unset"].is_list else (fields.text("unset"),)
    if not (changes or unset or "upgrade" in fields or "text" in fields):
        raise entry.error("a fix needs one of set, unset, upgrade, text")
    if not (changes or unset) and safety is not Safety.DISPLAY:
        raise entry.error("a fix that edits nothing has safety: display")
    return FixSpec(
        safety=safety,
        set=MappingProxyType(changes),
        unset=unset,
        upgrade=fields.text("upgrade") or None,
        text=template(fields["text"], words, has_check) if "text" in fields else None,
        when=condition(fields["when"], words) if "when" in fields else None,
        alternative=fields.choice("alternative", ("true", "false"), "false") == "true",
        # An option of the log repairs only what is an error for its sake: an interval of zero stops the trainer.
        repairs=severity is Severity.ERROR or not _only_reports((*changes, *unset)),
    )


def _only_reports(names: Collection[str]) -> bool:
    """Whether all these settings change what is logged, not what is trained."""
    return bool(names) and all(name in specs() and specs()[name].reports for name in names)


def _check(field: Field, path: Path) -> Check:
    """The function of a module beside the page (of a team), or of `kb.checks`."""
    name, _, function = field.text().partition(".")
    beside = path.parent / f"{name}.py"
    if function.isidentifier() and beside.is_file():
        return ModuleCheck(beside, function)
    shared = KNOWLEDGE / "checks"
    if not (shared / f"{name}.py").is_file() or not function.isidentifier():
        known = sorted(module.stem for module in shared.glob("[!_]*.py"))
        raise field.error(f"must be MODULE.FUNCTION, of kb/checks or beside the page{suggestion(name, known)}")
    return SharedCheck(name, function)


@dataclass(frozen=True, slots=True)
class SharedCheck:
    """A check of `kb.checks`, imported at its first call: most rules never run."""

    module: str
    function: str

    def __call__(self, facts: Facts) -> Outcome:
        check: Check = getattr(import_module(f"trainmedic.kb.checks.{self.module}"), self.function)
        return check(facts)


@dataclass(frozen=True)
class ModuleCheck:
    """A function of a module beside the page, imported at its first call so that an import error is the check's."""

    path: Path
    function: str

    def __call__(self, facts: Facts) -> Outcome:
        return self._check(facts)

    @cached_property
    def _check(self) -> Check:
        module = ModuleType(f"trainmedic.kb.checks.module_{self.path.stem.replace('-', '_')}")
        SourceFileLoader(module.__name__, str(self.path)).exec_module(module)
        check: Check = getattr(module, self.function)
        return check

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "function": self.function}
