"""Rule pages: front matter → `Rule`. The body (documentation, examples) is read on demand (`kb.pages.body`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
from trainmedic.kb.model.report import Safety, Severity
from trainmedic.kb.pages.condition import condition, signal_kinds, template
from trainmedic.kb.pages.page import KNOWLEDGE, Field, Fields, Kind, PageError, load, page_id, suggestion
from trainmedic.kb.versions import parse_range

STATUSES = ("preview", "stable", "deprecated")
CONCLUSIONS = ("fault", "no_fault")
SCOPES = ("framework", "algorithm", "stage", "model_family")
REQUIRED = ("id", "title", "severity", "status", "message")
OPTIONAL = ("since", "concludes", "stops", "symptoms", "applies", "when", "check", "fix", "cases", "sources")


def load_rules(
    paths: Sequence[Path] = (), frameworks: Collection[str | None] | None = None, builtin: Path = KNOWLEDGE
) -> RuleSet:
    """The built-in rules and those of further folders. A page that does not load becomes a failure.

    With ``frameworks`` (those of the runs to be checked; None: not recognised) the built-in pages that only look at
    others are left out: reading all of them takes longer than a check.
    """
    wanted = None if frameworks is None else frozenset(frameworks)
    leave_out = None if wanted is None else partial(_is_of_others, wanted=wanted)
    loaded = load(RULES, paths, leave_out, builtin)
    return RuleSet(rules=tuple(loaded.entries.values()), failures=loaded.problems, version=loaded.version)


def _is_of_others(content: bytes, wanted: frozenset[str | None]) -> bool:
    """Whether ``applies`` lists frameworks in brackets and none of them is wanted. Does not parse the page."""
    start = content.find(b"\napplies:")
    end = content.find(b"\n---", 4)
    if not 0 <= start < end:
        return False
    key = content.find(b"framework:", start, end)
    opening, closing = content.find(b"[", key, end), content.find(b"]", key, end)
    if key < 0 or not content[key + len(b"framework:") : opening].isspace():
        return False
    return wanted.isdisjoint(word.strip() for word in content[opening + 1 : closing].decode().split(","))


def read_rule(path: Path, page: Page, front: Field, words: Vocabulary | None = None) -> tuple[Rule, Page]:
    """One page's rule. Raises `PageError`."""
    words = words or vocabulary()
    fields = front.fields(REQUIRED, OPTIONAL)
    module = path.with_suffix(".py")
    if ("when" in fields) + ("check" in fields) + module.is_file() != 1:
        raise PageError(page.problem(f"a rule has either 'when', 'check' or a module {module.name}", "when"))
    has_check = "when" not in fields
    scopes, versions = _applies(fields)
    severity = Severity(fields["severity"].choice(tuple(Severity)))
    rule = Rule(
        id=page_id(fields, path),
        family=path.parent.name,
        title=fields["title"].both(),
        severity=severity,
        status=fields["status"].choice(STATUSES),
        since=fields.text("since"),
        concludes=fields.choice("concludes", CONCLUSIONS, "fault"),
        stops=fields.choice("stops", ("start", ""), "") == "start",
        symptoms=signal_kinds(fields, "symptoms", words),
        applies=scopes,
        versions=versions,
        condition=None if has_check else _joined_condition(fields["when"], versions, words),
        check=_check(fields, module) if has_check else None,
        message=template(fields["message"], words, has_check),
        fixes=tuple(_fix(item, words, has_check, severity) for item in fields.items("fix")),
        cases=fields.texts("cases") or (page_id(fields, path),),
        sources=tuple(item.reference() for item in fields.items("sources")),
        when="" if has_check else fields["when"].raw,
        page=page,
    )
    return rule, page


RULES = Kind(folder=KNOWLEDGE / "rules", marker="severity", read=read_rule)


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
    changes = {}
    for name, value in fields.mapping("set").items():
        if name not in words.settings:
            raise value.error(f"unknown setting {name!r}{suggestion(name, words.settings)}")
        changes[name] = value.typed()
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


def _check(fields: Fields, module: Path) -> Check:
    if "check" not in fields:
        return ModuleCheck(module)
    name, _, function = fields.text("check").partition(".")
    shared = KNOWLEDGE / "rules" / "shared"
    if not (shared / f"{name}.py").is_file() or not function.isidentifier():
        known = sorted(path.stem for path in shared.glob("[!_]*.py"))
        raise fields["check"].error(f"must be MODULE.FUNCTION of kb/rules/shared{suggestion(name, known)}")
    return SharedCheck(name, function)


@dataclass(frozen=True, slots=True)
class SharedCheck:
    """A check of `kb.rules.shared`, imported at its first call: most rules never run."""

    module: str
    function: str

    def __call__(self, facts: Facts) -> Outcome:
        check: Check = getattr(import_module(f"trainmedic.kb.rules.shared.{self.module}"), self.function)
        return check(facts)


@dataclass(frozen=True)
class ModuleCheck:
    """The ``check`` of a rule's own module, imported at its first call so that an import error is the rule's."""

    path: Path

    def __call__(self, facts: Facts) -> Outcome:
        return self._check(facts)

    @cached_property
    def _check(self) -> Check:
        module = ModuleType(f"trainmedic.kb.rules.module_{self.path.stem.replace('-', '_')}")
        SourceFileLoader(module.__name__, str(self.path)).exec_module(module)
        check: Check = module.check
        return check

    def __getstate__(self) -> dict[str, Path]:
        return {"path": self.path}
