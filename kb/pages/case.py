"""Case pages: front matter plus an English and a Chinese body → `kb.model.case.Case`. The format is in README.md.

Scalars are read as the text that stands on the page (YAML's own guessing would turn ``no`` into False and a
date into an object). A page that breaks the format becomes a `PageFailure` with its line; the others load.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from trainmedic.kb.model.case import Case, Question, Refutation
from trainmedic.kb.model.report import Reference, Text
from trainmedic.kb.pages.case_render import render

__all__ = ["CaseSet", "PageFailure", "load_cases", "read_case", "render"]

BUILT_IN = Path(__file__).parent.parent / "cases"
HEADINGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": MappingProxyType({"Symptom": "symptom", "Cause": "cause", "Fix": "fix", "How to confirm": "confirm"}),
        "zh": MappingProxyType({"现象": "symptom", "原因": "cause", "修复": "fix", "如何确认": "confirm"}),
    }
)
"""Heading on the page → section name, per language. "What does not help" is rendered from the refutations."""

REQUIRED = ("id", "title", "kind", "family", "frameworks", "symptoms", "evidence", "reviewed", "sources")
_FIELDS = frozenset(
    {
        *REQUIRED,
        *("algorithms", "stages", "model_families", "affected", "fixed", "signals", "settings"),
        *("rules", "no_rule", "refutations", "ask", "related", "status", "secondary"),
    }
)
_FRONT = re.compile(r"\A---\n(.*?)^---[ \t]*\n", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{2,3})[ \t]+(.+?)[ \t]*$")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFailure:
    """A page that could not be loaded. ``line`` is 1-based in the page's file."""

    page: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSet:
    """All cases that loaded, by id, drafts included. ``version`` changes with any page's text."""

    cases: tuple[Case, ...] = ()
    failures: tuple[PageFailure, ...] = ()
    version: str = ""
    pages: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # case id → page, for messages

    @property
    def published(self) -> tuple[Case, ...]:
        """The cases that may be shown."""
        return tuple(case for case in self.cases if case.status == "published")

    def get(self, case_id: str) -> Case | None:
        """The case of that id, or None."""
        return next((case for case in self.cases if case.id == case_id), None)


class _Bad(Exception):
    """The page breaks its format; ``line`` is 1-based in the file."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def load_cases(paths: Iterable[Path] = ()) -> CaseSet:
    """Load the built-in pages and those under ``paths`` (folders or single pages), in the order of their ids.

    An id that exists already is a failure of the later page. Raises nothing for what stands on a page.
    """
    cases: dict[str, Case] = {}
    pages: dict[str, str] = {}
    failures: list[PageFailure] = []
    digest = hashlib.sha256()
    for path, name in _discover((BUILT_IN, *paths)):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            failures.append(PageFailure(page=name, line=1, message=f"cannot be read: {error}"))
            continue
        digest.update(f"{name}\0{text}\0".encode())
        try:
            case = parse_case(text, path.stem)
            if case.id in cases:
                raise _Bad(1, f"id {case.id!r} is taken by {pages[case.id]}")
        except _Bad as error:
            failures.append(PageFailure(page=name, line=error.line, message=error.message))
            continue
        cases[case.id] = case
        pages[case.id] = name
    return CaseSet(
        cases=tuple(cases[key] for key in sorted(cases)),
        failures=tuple(failures),
        version=digest.hexdigest()[:12],
        pages=MappingProxyType(pages),
    )


def read_case(text: str, stem: str) -> Case | PageFailure:
    """One page's text → its case, or the failure that says where it breaks the format. ``stem`` is the file's."""
    try:
        return parse_case(text, stem)
    except _Bad as error:
        return PageFailure(page=f"{stem}.md", line=error.line, message=error.message)


def parse_case(text: str, stem: str) -> Case:
    """One page's text → its case. Raises `_Bad`."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = _FRONT.match(text)
    if front is None:
        raise _Bad(1, "front matter between two lines of --- is missing")
    fields = _Fields(_compose(front.group(1)))
    unknown = sorted(set(fields.nodes) - _FIELDS)
    if unknown:
        raise _Bad(
            _line(fields.nodes[unknown[0]]), f"unknown field {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}"
        )
    for name in REQUIRED:
        if name not in fields.nodes:
            raise _Bad(1, f"field {name!r} is missing")
    case_id = fields.text("id")
    if case_id != stem:
        raise _Bad(_line(fields.nodes["id"]), f"id {case_id!r} is not the file's stem {stem!r}")
    body_line = text.count("\n", 0, front.end()) + 1
    return Case(
        id=case_id,
        title=fields.both("title"),
        kind=fields.text("kind"),
        family=fields.text("family"),
        frameworks=fields.words("frameworks"),
        evidence=fields.text("evidence"),
        reviewed=fields.text("reviewed"),
        sections=_sections(text[front.end() :], body_line),
        sources=tuple(_source(node) for node in fields.items("sources")),
        algorithms=fields.words("algorithms"),
        stages=fields.words("stages"),
        model_families=fields.words("model_families"),
        affected=fields.mapping("affected"),
        fixed=fields.mapping("fixed"),
        signals=fields.words("signals"),
        settings=fields.words("settings"),
        symptoms=_symptoms(fields),
        rules=fields.words("rules"),
        no_rule=fields.text("no_rule") if "no_rule" in fields.nodes else "",
        refutations=tuple(_refutation(node) for node in fields.items("refutations")),
        ask=tuple(_question(node) for node in fields.items("ask")),
        related=fields.words("related"),
        secondary="secondary" in fields.nodes and fields.text("secondary") == "true",
        status=fields.text("status") if "status" in fields.nodes else "published",
    )


def _discover(roots: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Pages in a stable order, with the name that failures use. README.md and names with a leading _ are not pages."""
    for root in roots:
        found = [root] if root.is_file() else sorted(root.rglob("*.md"))
        for path in found:
            if path.name == "README.md" or path.name.startswith("_"):
                continue
            name = path.name if root.is_file() else path.relative_to(root).as_posix()
            yield path, f"kb/cases/{name}" if root == BUILT_IN else f"{root.name}/{name}"


def _compose(front: str) -> yaml.MappingNode:
    try:
        node = yaml.compose(front, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _Bad(mark.line + 2 if mark else 1, f"not YAML: {error.problem or error}") from error
    except yaml.YAMLError as error:
        raise _Bad(1, f"not YAML: {error}") from error
    if not isinstance(node, yaml.MappingNode):
        raise _Bad(2, "the front matter is not a mapping")
    return node


def _line(node: yaml.Node) -> int:
    """The node's 1-based line in the file: front matter starts on the second line."""
    return int(node.start_mark.line) + 2


def _pairs(node: yaml.Node, what: str) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise _Bad(_line(node), f"{what} must be a mapping")
    pairs: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _scalar(key, f"a key of {what}")
        if name in pairs:
            raise _Bad(_line(key), f"{name!r} stands twice in {what}")
        pairs[name] = value
    return pairs


def _scalar(node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
        raise _Bad(_line(node), f"{what} must be a text")
    return str(node.value).strip()


def _items(node: yaml.Node, what: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        raise _Bad(_line(node), f"{what} must be a list")
    return list(node.value)


def _both(node: yaml.Node, what: str) -> Text:
    pairs = _pairs(node, what)
    if sorted(pairs) != ["en", "zh"]:
        raise _Bad(_line(node), f"{what} needs exactly en and zh, has {', '.join(sorted(pairs)) or 'nothing'}")
    return Text(en=_scalar(pairs["en"], f"{what}.en"), zh=_scalar(pairs["zh"], f"{what}.zh"))


class _Fields:
    """The front matter's fields, with an error that has a line for everything that is not as it should be."""

    def __init__(self, node: yaml.MappingNode) -> None:
        self.nodes = _pairs(node, "the front matter")

    def text(self, name: str) -> str:
        return _scalar(self.nodes[name], name)

    def both(self, name: str) -> Text:
        return _both(self.nodes[name], name)

    def items(self, name: str) -> list[yaml.Node]:
        return _items(self.nodes[name], name) if name in self.nodes else []

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(_scalar(node, f"an item of {name}") for node in self.items(name))

    def mapping(self, name: str) -> Mapping[str, str]:
        if name not in self.nodes:
            return MappingProxyType({})
        pairs = _pairs(self.nodes[name], name)
        return MappingProxyType({key: _scalar(value, f"{name}.{key}") for key, value in pairs.items()})


def _record(node: yaml.Node, what: str, names: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, yaml.Node]:
    pairs = _pairs(node, what)
    missing = [name for name in names if name not in pairs]
    strange = [name for name in pairs if name not in (*names, *optional)]
    if missing or strange:
        raise _Bad(_line(node), f"{what} needs {', '.join(names)}; has {', '.join(pairs) or 'nothing'}")
    return pairs


def _source(node: yaml.Node) -> Reference:
    pairs = _record(node, "a source", ("url", "says"), ("note",))
    note = _scalar(pairs["note"], "note") if "note" in pairs else ""
    return Reference(url=_scalar(pairs["url"], "url"), says=_scalar(pairs["says"], "says"), note=note)


def _refutation(node: yaml.Node) -> Refutation:
    pairs = _record(node, "a refutation", ("claim", "why"))
    return Refutation(claim=_both(pairs["claim"], "claim"), why=_both(pairs["why"], "why"))


def _question(node: yaml.Node) -> Question:
    pairs = _record(node, "a question of ask", ("fact", "ask", "why"))
    return Question(fact=_scalar(pairs["fact"], "fact"), ask=_both(pairs["ask"], "ask"), why=_both(pairs["why"], "why"))


def _symptoms(fields: _Fields) -> Mapping[str, tuple[str, ...]]:
    pairs = _pairs(fields.nodes["symptoms"], "symptoms")
    if sorted(pairs) != ["en", "zh"]:
        raise _Bad(_line(fields.nodes["symptoms"]), "symptoms needs exactly en and zh")
    return MappingProxyType(
        {
            language: tuple(_scalar(node, f"a symptom ({language})") for node in _items(pairs[language], "symptoms"))
            for language in ("en", "zh")
        }
    )


def _sections(body: str, first_line: int) -> Mapping[str, Mapping[str, str]]:
    """``## en`` / ``## zh`` and their ``###`` sections → language → section name → Markdown.

    Headings inside a fence are text. Raises `_Bad` for a heading that is not one of `HEADINGS`.
    """
    found: dict[str, dict[str, list[str]]] = {"en": {}, "zh": {}}
    language, section, fence = "", "", ""
    for number, line in enumerate(body.split("\n"), start=first_line):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            fence = "" if fence and stripped.startswith(fence) else fence or stripped[:3]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            if section:
                found[language][section].append(line)
            elif stripped:
                raise _Bad(number, "text before the first section heading")
        elif len(heading.group(1)) == 2:
            language, section = heading.group(2), ""
            if language not in found:
                raise _Bad(number, f"heading '## {language}': only '## en' and '## zh'")
        else:
            section = HEADINGS.get(language, {}).get(heading.group(2), "")
            if not section or section in found[language]:
                allowed = ", ".join(HEADINGS.get(language, {}))
                raise _Bad(
                    number, f"section {heading.group(2)!r} is unknown or stands twice; under {language}: {allowed}"
                )
            found[language][section] = []
    return MappingProxyType(
        {
            name: MappingProxyType({key: "\n".join(lines).strip() for key, lines in sections.items()})
            for name, sections in found.items()
        }
    )
