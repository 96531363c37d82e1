"""`trainmedic kb migrate`: pages of one case or one rule each, rewritten as pages of causes with their checks.

Texts are moved as they stand. A sentence of a rule's documentation is left out where the page of the cause says all of
it, in the same language; `Migration.dropped` lists them.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainmedic.ingest.authoring.restated import Restated, left
from trainmedic.kb.model.page import Page
from trainmedic.kb.pages.case import HEADINGS, is_cause
from trainmedic.kb.pages.examples import KINDS
from trainmedic.kb.pages.page import CHECK, Fields, discover, read_page
from trainmedic.kb.pages.sections import Section, sections

DOCUMENTATION: Mapping[str, tuple[str, ...]] = {
    "en": ("What it finds", "Why it matters", "What to do"),
    "zh": ("检查什么", "为什么重要", "怎么改"),
}
OWN_SECTIONS = ("confirm", "cause", "fix")
"""What the documentation of a rule without a case is on its page."""
CHECK_FIELDS = (
    *("id", "title", "severity", "stops", "status", "since", "concludes", "symptoms", "applies", "when", "check"),
    *("message", "note", "fix", "sources"),
)
LONG = 100
"""Characters of a condition that are written on one line."""
UNCERTAIN = frozenset(("id", "symptoms", "signals", "refutations", "related", "checks", "detected_by"))
_KEY = re.compile(r"\b(?:title|applies|framework|when|message|fix|text|safety|set|unset|en|zh):")
_CHAPTER = f"\n## {CHECK}"
FOLDERS = re.compile(r"(?:^|(?<=/))(?:cases|rules)(?=/)")


@dataclass(frozen=True, slots=True)
class Parts:
    """A page in either format: its fields, their lines as they are written, and what comes after them."""

    path: Path
    page: Page
    fields: Fields
    blocks: dict[str, str]
    body: str


@dataclass(slots=True)
class Migration:
    """The texts of the new pages by path, the old files that go, modules that move, and the sentences left out."""

    pages: dict[Path, str] = field(default_factory=dict)
    gone: list[Path] = field(default_factory=list)
    modules: dict[Path, Path] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)

    def write(self) -> None:
        for path in self.gone:
            path.unlink()
        for old, new in self.modules.items():
            if old != new:
                new.parent.mkdir(parents=True, exist_ok=True)
                old.rename(new)
        for path, text in self.pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def migrate(folder: Path) -> Migration:
    """What the pages below a folder become; nothing is written yet. Raises `PageError`.

    Subfolders ``cases`` and ``rules`` become ``causes``; other pages stay where they are. A page that is there in both
    formats takes over what the earlier one says, and keeps its other checks.
    """
    contents = ((path, name, path.read_bytes()) for path, name in discover(folder))
    pages = [_parts(content.decode(), path, name) for path, name, content in contents if is_cause(content)]
    made = Migration()
    rest = [old for old in pages if "severity" not in old.blocks]
    cases = [old for old in rest if "rules" in old.blocks or _new_path(folder, old.path) != old.path]
    places = {old.path.stem: old.path for old in rest if old not in cases}
    order: dict[str, int] = {}  # in which a case lists its rules
    for old in cases:
        order |= {name: at for at, name in enumerate(old.fields.texts("rules"))}
        new = places.setdefault(old.path.stem, _new_path(folder, old.path))
        made.pages[new] = _case_text(old, _text_at(new) if new != old.path else "")
        made.gone.append(old.path)
    rules = (old for old in pages if "severity" in old.blocks)
    for old in sorted(rules, key=lambda old: order.get(old.path.stem, len(order))):
        made.gone.append(old.path)
        named = old.fields.texts("cases")
        home = next((case for case in named if case in places), None)
        if home is None:
            home = old.path.stem
            place = places.setdefault(home, _new_path(folder, old.path))
            made.pages[place] = _own_page(old, named)
        place = places[home]
        made.pages[place] = _with_check(made.pages.get(place) or _text_at(place), place, old, made)
        for other in (places[case] for case in named if case in places and case != home):
            made.pages[other] = _detected(made.pages.get(other) or _text_at(other), old.path.stem)
    return made


def _text_at(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _parts(text: str, path: Path = Path(), name: str = "") -> Parts:
    page, front = read_page(text, name)
    lines = page.text.split("\n")
    written = blocks("\n".join(lines[1 : page.body_line - 2]) + "\n")
    return Parts(path, page, Fields(front.mapping()), written, "\n".join(lines[page.body_line - 1 :]))


def blocks(front: str) -> dict[str, str]:
    """The lines of each field of a front matter, comments before the first apart."""
    parts = re.split(r"(?m)^(?=[A-Za-z_]+:)", front)
    return {part.partition(":")[0]: part for part in parts if ":" in part}


def _new_path(folder: Path, path: Path) -> Path:
    return folder / FOLDERS.sub("causes", path.relative_to(folder).as_posix(), count=1)


def _page(front: Mapping[str, str], body: str) -> str:
    return f"---\n{''.join(front.values())}---\n{body.strip()}\n"


def _case_text(old: Parts, there: str) -> str:
    """A case without what the new format says by default, and without its rules, which come as checks, or are on the
    page that is ``there`` already."""
    kept = {name: text for name, text in old.blocks.items() if name != "rules"}
    if old.fields.text("status") == "published":
        del kept["status"]
    if old.fields.text("kind") == "fault":
        del kept["kind"]
    if there:
        page = _parts(there)
        kept |= {name: page.blocks[name] for name in ("detected_by", "checks") if name in page.blocks}
        return _page(kept, f"{old.body.rstrip()}\n{''.join(page.body.partition(_CHAPTER)[1:])}")
    return _page(kept, old.body)


def _own_page(old: Parts, cases: Sequence[str]) -> str:
    """The page of a rule that names no case of this folder: what it finds and why that matters is its cause."""
    applies = Fields(old.fields.mapping("applies"))
    front = {name: old.blocks[name] for name in ("id", "title")}
    if old.fields.text("concludes") == "no_fault":
        front["kind"] = "kind: artefact\n"
    front["family"] = f"family: {old.path.parent.name}\n"
    if versions := applies.mapping("versions"):
        listed = ", ".join(f"{package}: {json.dumps(value.text())}" for package, value in versions.items())
        front["affected"] = f"affected: {{{listed}}}\n"
    if signals := old.fields.texts("symptoms"):
        front["signals"] = f"signals: [{', '.join(signals)}]\n"
    front["sources"] = old.blocks.get("sources", "sources: []\n")
    if cases:
        front["related"] = f"related: [{', '.join(cases)}]\n"
    texts = documentation(old)
    body = []
    for language, headings in HEADINGS.items():
        own = dict(zip(OWN_SECTIONS, texts.get(language, ()), strict=False))
        if any(own.values()):
            body.append(f"## {language}")
            body += [f"### {heading}\n{own[name]}\n" for heading, name in headings.items() if own.get(name)]
    return _page(front, "\n".join(body))


def documentation(old: Parts) -> Mapping[str, tuple[str, ...]]:
    """The texts of a rule's documentation in their order, by language."""
    found = {(s.chapter, s.heading): s.text for s in sections(old.page, (*DOCUMENTATION, *KINDS))}
    texts = {language: tuple(found.get((language, h), "") for h in known) for language, known in DOCUMENTATION.items()}
    return {language: listed for language, listed in texts.items() if any(listed)}


def _with_check(text: str, place: Path, old: Parts, made: Migration) -> str:
    """The page's text with one more check."""
    page = _parts(text)
    mine = {name: value for name, value in old.blocks.items() if name in CHECK_FIELDS}
    for name, default in (("status", "stable"), ("concludes", "fault")):
        if old.fields.text(name) == default:
            mine.pop(name, None)
    if old.fields["title"].both() == page.fields["title"].either():
        del mine["title"]
    if old.fields.texts("symptoms") == page.fields.texts("signals"):
        mine.pop("symptoms", None)
    elif "symptoms" not in mine:
        mine["symptoms"] = "symptoms: []\n"
    if "when" in mine:
        mine["when"] = _condition(old)
    module = old.path.with_suffix(".py")
    if module.is_file():
        made.modules[module] = place.parent / module.name
        mine["check"] = f"check: {module.stem}.check\n"
    said = _said(page, old)
    if place.stem != old.path.stem:
        kept, dropped = left(documentation(old), said)
        made.dropped += [f"{old.path.stem}\t{sentence}" for sentence in dropped]
        if kept:
            mine["note"] = "note:\n" + "".join(_block(f"  {language}", note) for language, note in kept.items())
    mine.pop("sources", None)
    if sources := list(_sources(old, page.fields, said)):
        mine["sources"] = "sources:\n" + "".join(f"  - {source}\n" for source in sources)
    listed = "".join(mine[name] for name in CHECK_FIELDS if name in mine)
    indented = "".join(f"    {line}" if line.strip() else line for line in listed.splitlines(keepends=True))
    first, *others = re.split(r"^(?=  - id: )", page.blocks.pop("checks", "checks:\n"), flags=re.M)
    name = old.path.stem
    checks = first + "".join(other for other in others if other.partition("\n")[0] != f"  - id: {name}")
    whole, *chapters = page.body.split(_CHAPTER)
    body = _CHAPTER.join((whole, *(chapter for chapter in chapters if chapter.partition("\n")[0] != name)))
    page.blocks["checks"] = f"{checks}  - {indented[4:]}"
    return _page(page.blocks, f"{body.rstrip()}\n\n{_chapter(old)}")


def _said(page: Parts, old: Parts) -> Restated:
    """What the page of the cause says for certain: not what users say; with the check's own texts and condition."""
    body = f"\n{page.body}".partition(_CHAPTER)[0]
    certain = "".join(block for name, block in page.blocks.items() if name not in UNCERTAIN)
    check = "".join(old.blocks.get(name, "") for name in ("title", "applies", "when", "message", "fix"))
    return Restated((*certain.split("\n"), *body.split("\n"), _KEY.sub("", check)))


def _sources(old: Parts, of_page: Fields, said: Restated) -> Iterator[str]:
    """The sources that the page does not have, or has with a note that says less."""
    known = {item.reference().url for item in of_page.items("sources")}
    for item in old.fields.items("sources"):
        source = item.reference()
        if source.url not in known or (source.note and not said.covers(source.note, "en")):
            note = f", note: {json.dumps(source.note, ensure_ascii=False)}" if source.note else ""
            yield f'{{url: "{source.url}", says: {source.says}{note}}}'


def _block(key: str, text: str) -> str:
    indent = " " * (len(key) - len(key.lstrip()) + 2)
    if "\n" not in text:
        return f"{key}: {json.dumps(text, ensure_ascii=False)}\n"
    lines = "".join(f"{indent}{line}\n" if line else "\n" for line in text.split("\n"))
    return f"{key}: |-\n{lines}"


def _condition(old: Parts) -> str:
    """The condition as it is written; a long one with one term a line."""
    when = old.fields["when"]
    text = " ".join(when.raw.split())
    if len(text) <= LONG or text != when.raw.strip():
        return old.blocks["when"]
    breaks = sorted(_breaks(ast.parse(text, mode="eval").body, text))
    lines = [text[start:end].strip() for start, end in zip((0, *breaks), (*breaks, len(text)), strict=True)]
    return "when: >-\n" + "".join(f"  {line}\n" for line in lines)


def _breaks(node: ast.expr, text: str) -> Iterator[int]:
    """Where the terms of a condition begin, with their operators; within a term if it is long itself."""
    if isinstance(node, ast.UnaryOp):
        yield from _breaks(node.operand, text)
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for before, after in zip(node.values, node.values[1:], strict=False):
            end = _chars(text, before.end_col_offset or 0)
            yield text.rindex(word, end, _chars(text, after.col_offset)) + 1
        for value in node.values:
            if (value.end_col_offset or 0) - value.col_offset > LONG:
                yield from _breaks(value, text)


def _chars(text: str, offset: int) -> int:
    """A place in UTF-8, which is what `ast` counts, as one in characters."""
    return len(text.encode()[:offset].decode())


def _chapter(old: Parts) -> str:
    def example(section: Section) -> str:
        return f"### {section.chapter}: {section.heading}\n{section.text}\n"

    found = [s for s in sections(old.page, (*DOCUMENTATION, *KINDS)) if s.chapter in KINDS]
    return "\n".join((f"## {CHECK}{old.path.stem}", *map(example, found)))


def _detected(text: str, rule: str) -> str:
    page = _parts(text)
    rules = dict.fromkeys((*page.fields.texts("detected_by"), rule))
    checks = page.blocks.pop("checks", "")
    page.blocks.update(detected_by=f"detected_by: [{', '.join(rules)}]\n", checks=checks)
    return _page(page.blocks, page.body)
