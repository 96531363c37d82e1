"""Rule pages: front matter → `Rule`. The body (documentation, examples) is read only when asked for (`kb.pages.body`).

Reads the package's own pages and the folders it is given; a page that does not follow the format becomes a
`RuleFailure` naming page and line, and the others load.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias

import yaml

from trainmedic.kb.engine.expressions import Expression, all_of, compile_expression, fact_node
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.placeholders import Template, compile_template
from trainmedic.kb.engine.rule import Check, FixSpec, Rule, RuleSet
from trainmedic.kb.engine.vocabulary import Vocabulary, vocabulary
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.report import Reference, RuleFailure, Safety, Severity, Text
from trainmedic.kb.versions import parse_range

Front: TypeAlias = Mapping[str, Any]

STATUSES = ("preview", "stable", "deprecated")
CONCLUSIONS = ("fault", "no_fault")
SAYS = ("maintainer", "reporter", "source", "reproduction", "docs")
SCOPES = ("framework", "algorithm", "stage", "model_family")
_KEYS = (
    "id", "title", "severity", "status", "since", "concludes", "symptoms", "applies", "when", "message", "fix", "cases",
    "sources",
)  # fmt: skip
_FIX_KEYS = ("set", "unset", "upgrade", "text", "safety", "when")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FRONT = re.compile(r"---\n(.*?\n)---(?:\n|\Z)", re.DOTALL)
_FRAMEWORKS = re.compile(rb"^(?:applies: *\{[^\n]*?| {2})\bframework: *\[([^\]\n]*)\]", re.MULTILINE)
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
BUILT_IN = Path(__file__).parent.parent / "rules"


def load_rules(paths: Sequence[Path] = (), frameworks: Collection[str | None] | None = None) -> RuleSet:
    """The built-in pages and those of further folders. Bad pages, duplicate ids and absent folders become failures.

    With ``frameworks`` (those of the runs to be checked; None: not recognised) the built-in pages that only look at
    others are left out: reading all of them takes longer than a check.
    """
    words = vocabulary()
    rules: dict[str, Rule] = {}
    failures: list[RuleFailure] = []
    digest = hashlib.sha256()
    for root in (BUILT_IN, *paths):
        if not root.is_dir():
            failures.append(RuleFailure(rule_id=str(root), message="there is no such folder of rule pages"))
        for path in pages(root):
            module = path.with_suffix(".py")
            try:
                content = path.read_bytes()
                digest.update(path.name.encode() + b"\0" + content + (module.read_bytes() if module.is_file() else b""))
                if root is BUILT_IN and frameworks is not None and _of_others(content, frameworks):
                    continue
                rule = parse_page(content.decode("utf-8"), path, words)
                if rule.id in rules:
                    raise InvalidPage(f"{path.name}: the id is used by {rules[rule.id].path} already")
                rules[rule.id] = rule
            except (InvalidPage, OSError, UnicodeDecodeError) as error:
                failures.append(RuleFailure(rule_id=path.stem, message=str(error)))
    return RuleSet(
        rules=tuple(rules[key] for key in sorted(rules)),
        failures=tuple(failures),
        version=digest.hexdigest()[:12],
    )


def _of_others(content: bytes, frameworks: Collection[str | None]) -> bool:
    """Whether a page names its frameworks, and none of these is among them. Told without reading the page."""
    named = _FRAMEWORKS.search(content, 0, max(content.find(b"\n---", 4), 0))
    return named is not None and not {word.strip() for word in named[1].decode().split(",")} & set(frameworks)


def pages(root: Path) -> Iterable[Path]:
    """The rule pages under a folder, sorted: every Markdown file but READMEs."""
    return sorted(path for path in root.rglob("*.md") if path.name != "README.md")


def parse_page(text: str, path: Path, words: Vocabulary) -> Rule:
    """One page. Raises `InvalidPage` with page name and line."""
    text = text.replace("\r\n", "\n")
    match = _FRONT.match(text)
    if match is None:
        raise InvalidPage(f"{path.name}:1: the page must start with front matter between two lines '---'")
    try:
        front = yaml.load(match[1], Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark is not None else 1
        raise InvalidPage(f"{path.name}:{line}: {getattr(error, 'problem', None) or 'no YAML'}") from None
    if not isinstance(front, dict):
        raise InvalidPage(f"{path.name}:2: the front matter must be a mapping")
    reader = _Reader(front, match[1], path, words)
    return reader.rule(text, text.count("\n", 0, match.end()) + 1)


class _Reader:
    """Front matter → Rule, every mistake with its line."""

    def __init__(self, front: Front, source: str, path: Path, words: Vocabulary) -> None:
        self.front, self.source, self.path, self.words = front, source, path, words

    def rule(self, text: str, body_line: int) -> Rule:
        for key in self.front:
            if key not in _KEYS:
                raise self.wrong(str(key), f"there is no key {key!r}; allowed: {', '.join(_KEYS)}")
        module = self.path.with_suffix(".py")
        own = module.is_file()
        when = self.front.get("when")
        if own == (when is not None):
            raise self.wrong("when", f"a rule has either 'when' or a module {module.name}")
        applies, versions = self.applies()
        return Rule(
            id=self.identity(),
            family=self.path.parent.name,
            path=self.path,
            title=self.text("title", self.front.get("title")),
            severity=Severity(self.choice("severity", tuple(Severity))),
            status=self.choice("status", STATUSES),
            since=str(self.front.get("since", "")),
            concludes=self.choice("concludes", CONCLUSIONS, "fault"),
            symptoms=self.symptoms(),
            applies=applies,
            versions=versions,
            condition=None if own else self.condition(when, versions),
            module=module_check(module) if own else None,
            message=self.template("message", self.front.get("message"), own),
            fixes=tuple(self.fix(entry, own) for entry in self.sequence("fix")),
            cases=self.strings("cases"),
            sources=tuple(self.source_of(entry) for entry in self.sequence("sources")),
            when="" if own else str(when),
            text=text,
            body_line=body_line,
        )

    def wrong(self, key: str, reason: str) -> InvalidPage:
        lines = self.source.split("\n")
        line = next((n for n, content in enumerate(lines, 2) if content.lstrip("- {").startswith(f"{key}:")), 1)
        return InvalidPage(f"{self.path.name}:{line}: {reason}")

    def identity(self) -> str:
        found = self.front.get("id")
        if found != self.path.stem or not _ID.fullmatch(self.path.stem):
            raise self.wrong(
                "id", f"the id must be the file's name {self.path.stem!r} in lower case and dashes, not {found!r}"
            )
        return self.path.stem

    def text(self, key: str, value: object) -> Text:
        if isinstance(value, dict) and set(value) == {"en", "zh"}:
            en, zh = value["en"], value["zh"]
            if isinstance(en, str) and isinstance(zh, str) and en.strip() and zh.strip():
                return Text(en=en.strip(), zh=zh.strip())
        raise self.wrong(key, f"{key} must be a text in both languages: {{en: ..., zh: ...}}")

    def template(self, key: str, value: object, own: bool) -> Template:
        try:
            return compile_template(self.text(key, value), self.words, own)
        except InvalidPage as error:
            raise self.nested(key, error) from None

    def nested(self, key: str, error: InvalidPage) -> InvalidPage:
        if error.message.startswith(self.path.name):
            return error
        hint = f" ({error.hint})" if error.hint else ""
        return self.wrong(key, f"{key}: {error.message}{hint}")

    def choice(self, key: str, allowed: Sequence[str], default: str | None = None) -> str:
        value = self.front.get(key, default)
        if value not in allowed:
            raise self.wrong(key, f"{key} must be one of {', '.join(allowed)}, not {value!r}")
        return str(value)

    def sequence(self, key: str) -> list[Any]:
        value = self.front.get(key) or []
        if not isinstance(value, list):
            raise self.wrong(key, f"{key} must be a list")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.sequence(key)
        if not all(isinstance(part, str) for part in value):
            raise self.wrong(key, f"{key} must be a list of texts")
        return tuple(value)

    def symptoms(self) -> tuple[str, ...]:
        for kind in self.strings("symptoms"):
            if kind not in self.words.signals:
                raise self.wrong(
                    "symptoms", f"{kind!r} is no signal kind; there are {', '.join(sorted(self.words.signals))}"
                )
        return self.strings("symptoms")

    def applies(self) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
        value = self.front.get("applies") or {}
        if not isinstance(value, dict) or set(value) - {*SCOPES, "versions"}:
            raise self.wrong("applies", f"applies is a mapping of {', '.join(SCOPES)} and versions")
        scopes = {}
        for key in SCOPES:
            listed = value.get(key)
            if listed is not None:
                if not isinstance(listed, list) or not listed or not all(isinstance(word, str) for word in listed):
                    raise self.wrong("applies", f"applies.{key} must be a list of words")
                scopes[key] = tuple(listed)
        versions = value.get("versions") or {}
        if not isinstance(versions, dict):
            raise self.wrong("applies", "applies.versions maps packages to ranges")
        for package, spec in versions.items():
            try:
                parse_range(str(spec))
            except ValueError as error:
                raise self.wrong("applies", f"applies.versions.{package}: {error}") from None
        return MappingProxyType(scopes), MappingProxyType({str(key): str(spec) for key, spec in versions.items()})

    def condition(self, when: object, versions: Mapping[str, str]) -> Expression:
        ranges = [
            fact_node(f'version("{package}", "{spec}")', ("version", package, spec))
            for package, spec in versions.items()
        ]
        if when is True:
            return all_of(*ranges) if ranges else self.expression("when", "True")
        if not isinstance(when, str):
            raise self.wrong("when", "when must be a condition (a text), or true")
        return all_of(self.expression("when", when).root, *ranges)

    def expression(self, key: str, text: str) -> Expression:
        try:
            return compile_expression(text, self.words)
        except InvalidPage as error:
            raise self.nested(key, error) from None

    def fix(self, entry: object, own: bool) -> FixSpec:
        if not isinstance(entry, dict) or set(entry) - set(_FIX_KEYS):
            raise self.wrong("fix", f"a fix is a mapping of {', '.join(_FIX_KEYS)}")
        safety, changes, unset = entry.get("safety"), entry.get("set") or {}, entry.get("unset") or []
        upgrade, when = entry.get("upgrade"), entry.get("when")
        unset = [unset] if isinstance(unset, str) else unset
        if safety not in tuple(Safety):
            raise self.wrong("fix", f"a fix needs safety: one of {', '.join(Safety)}")
        if not isinstance(changes, dict) or not all(isinstance(name, str) for name in unset):
            raise self.wrong("fix", "set maps canonical settings to values; unset names settings or options")
        for name, value in changes.items():
            if name not in self.words.settings or not (value is None or isinstance(value, (str, int, float, bool))):
                raise self.wrong("fix", f"set: {name!r} must be a canonical setting with a plain value")
        if not (changes or unset or upgrade or entry.get("text")):
            raise self.wrong("fix", "a fix needs one of set, unset, upgrade, text")
        if not (changes or unset) and safety != Safety.DISPLAY:
            raise self.wrong("fix", "a fix that edits nothing has safety: display")
        return FixSpec(
            safety=Safety(safety),
            set=MappingProxyType(dict(changes)),
            unset=tuple(unset),
            upgrade=str(upgrade) if upgrade else None,
            text=self.template("text", entry["text"], own) if entry.get("text") else None,
            when=self.expression("fix", str(when)) if when is not None else None,
        )

    def source_of(self, entry: object) -> Reference:
        if not isinstance(entry, dict) or set(entry) - {"url", "says", "note"} or entry.get("says") not in SAYS:
            raise self.wrong("sources", f"a source is {{url, says, note}}, says one of {', '.join(SAYS)}")
        url = str(entry.get("url", ""))
        if not url.startswith("https://"):
            raise self.wrong("sources", f"a source's url starts with https://, not {url!r}")
        return Reference(url=url, says=str(entry["says"]), note=str(entry.get("note", "")))


def module_check(path: Path) -> Check:
    """The ``check`` of a rule's own module, imported when first called (an import error is then the rule's)."""
    loaded: list[Check] = []

    def check(facts: Facts) -> Outcome:
        if not loaded:
            module = ModuleType(f"trainmedic.kb.rules.module_{path.stem.replace('-', '_')}")
            SourceFileLoader(module.__name__, str(path)).exec_module(module)
            loaded.append(module.check)
        return loaded[0](facts)

    return check
