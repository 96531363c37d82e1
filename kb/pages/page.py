"""Parts shared by all pages: front matter with positions, discovery, and one kind of error.

A `Kind` is what is read of the pages in a folder under `kb`: the cases of `kb/causes`, their checks, the mechanisms.
Scalars are read as the text on the page (YAML would turn ``no`` into False and a date into an object); a field that
wants a number or a boolean says so (`Field.typed`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.report import Reference, Text
from trainmedic.kb.pages.compiled import CompiledPages
from trainmedic.kb.suggest import closest

if TYPE_CHECKING:
    import yaml

KNOWLEDGE = Path(__file__).parent.parent
SAYS = ("maintainer", "reporter", "source", "reproduction", "docs")
LANGUAGES = frozenset(("en", "zh"))
MOST_LISTED = 30
CHECK = "Check "
"""How the heading of a check's chapter begins."""
_FENCE = "---"


@cache
def _loader() -> Any:
    """A loader that finds no tags: fields say what they want, and looking for tags takes a quarter of the time."""
    import yaml  # here and below: compiled pages need none of it, and loading it takes 10 ms

    base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

    class Loader(base):  # type: ignore[misc]
        def resolve(self, kind: type[yaml.Node], value: object, implicit: object) -> str:
            return ""

        def descend_resolver(self, node: yaml.Node, index: object) -> None:
            """Paths have no tags."""

        def ascend_resolver(self) -> None:
            """Paths have no tags."""

    return Loader


@cache
def _typing() -> tuple[Any, Any]:
    """What finds the tag of a scalar, and what makes a value of it."""
    from yaml.constructor import SafeConstructor
    from yaml.resolver import Resolver

    return Resolver(), SafeConstructor()


class PageError(InvalidPage):
    """A page breaks its format."""

    def __init__(self, problem: PageProblem | str, *, hint: str | None = None) -> None:
        super().__init__(str(problem), hint=hint)
        self.problem = PageProblem("", 1, problem) if isinstance(problem, str) else problem


def suggestion(word: str, known: Collection[str]) -> str:
    """Suggestions for an unknown word: the nearest known one, or all of them if they are few."""
    near = closest(word, known)
    if near is not None:
        return f"; did you mean {str(near)!r}?"
    return f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= MOST_LISTED else ""


class Field:
    """One value of a page's YAML. Each reading method raises `PageError` with the value's line.

    ``first`` is the line of the file on which the YAML starts; front matter starts on the second.
    """

    __slots__ = ("first", "name", "node", "page")

    def __init__(self, page: str, name: str, node: Any, first: int = 2) -> None:
        """``node`` is a `yaml.Node`, told apart by its ``id``."""
        self.page, self.name, self.node, self.first = page, name, node, first

    @property
    def line(self) -> int:
        """The line in the file."""
        return int(self.node.start_mark.line) + self.first

    def error(self, message: str) -> PageError:
        return PageError(PageProblem(self.page, self.line, f"{self.name}: {message}" if self.name else message))

    @property
    def raw(self) -> str:
        """The scalar exactly as written."""
        if self.node.id != "scalar":
            raise self.error("must be a text")
        return str(self.node.value)

    def text(self, *, empty: bool = False) -> str:
        """A text without the blanks around it."""
        text = self.raw.strip()
        if not text and not empty:
            raise self.error("must not be empty")
        return text

    def typed(self) -> str | int | float | bool | None:
        """The scalar with the type that YAML gives it; quoted scalars are texts."""
        raw = self.raw
        if getattr(self.node, "style", ""):
            return raw
        from yaml import ScalarNode

        resolver, constructor = _typing()
        value = constructor.construct_object(ScalarNode(resolver.resolve(ScalarNode, raw, (True, False)), raw))
        return value if value is None or isinstance(value, (bool, int, float)) else raw

    def choice(self, allowed: Collection[str]) -> str:
        word = self.text()
        if word not in allowed:
            raise self.error(f"unknown word {word!r}{suggestion(word, allowed)}")
        return word

    @property
    def is_list(self) -> bool:
        return bool(self.node.id == "sequence")

    def items(self) -> Sequence[Field]:
        """The items of a list."""
        if not self.is_list:
            raise self.error("must be a list")
        return [Field(self.page, self.name, node, self.first) for node in self.node.value]

    def texts(self) -> tuple[str, ...]:
        return tuple(item.text() for item in self.items())

    def mapping(self) -> dict[str, Field]:
        """Key → value; a key that occurs twice is an error."""
        if self.node.id != "mapping":
            raise self.error("must be a mapping")
        fields: dict[str, Field] = {}
        for key, value in self.node.value:
            name = key.value.strip() if key.id == "scalar" else ""
            if not name or name in fields:
                name_field = Field(self.page, self.name, key, self.first)
                raise name_field.error(f"{name_field.text()!r} occurs twice")
            fields[name] = Field(self.page, f"{self.name}.{name}" if self.name else name, value, self.first)
        return fields

    def fields(self, required: Sequence[str], optional: Sequence[str] = ()) -> Fields:
        fields = Fields(self.mapping())
        for name, field in fields.by_name.items():
            if name not in required and name not in optional:
                problem = f"unknown field {name!r}{suggestion(name, (*required, *optional))}"
                raise PageError(PageProblem(self.page, field.line, problem))
        for name in required:
            if name not in fields:
                raise self.error(f"field {name!r} is missing")
        return fields

    def both(self) -> Text:
        fields = self.mapping()
        if sorted(fields) != ["en", "zh"]:
            raise self.error("must be a text in both languages: {en: ..., zh: ...}")
        return Text(en=fields["en"].text(), zh=fields["zh"].text())

    def either(self) -> Text:
        """A text in both languages; what is written in one alone is shown in the other too."""
        fields = self.mapping()
        if not fields or not LANGUAGES.issuperset(fields):
            raise self.error("must be a text in one language or both: {en: ..., zh: ...}")
        texts = {language: field.text() for language, field in fields.items()}
        return Text(en=texts.get("en") or texts["zh"], zh=texts.get("zh") or texts["en"])

    def reference(self) -> Reference:
        fields = self.fields(("url", "says"), ("note", "text", "symbol", "in"))
        note = fields["note"].text(empty=True) if "note" in fields else ""
        return Reference(url=fields["url"].text(), says=fields["says"].choice(SAYS), note=note)


class Fields:
    """The fields of a mapping by name; absent ones read as empty."""

    __slots__ = ("by_name",)

    def __init__(self, by_name: Mapping[str, Field]) -> None:
        self.by_name = by_name

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def __getitem__(self, name: str) -> Field:
        return self.by_name[name]

    def text(self, name: str, default: str = "") -> str:
        return self[name].text() if name in self else default

    def choice(self, name: str, allowed: Collection[str], default: str) -> str:
        return self[name].choice(allowed) if name in self else default

    def items(self, name: str) -> Sequence[Field]:
        return self[name].items() if name in self else ()

    def texts(self, name: str) -> tuple[str, ...]:
        return self[name].texts() if name in self else ()

    def mapping(self, name: str) -> Mapping[str, Field]:
        return self[name].mapping() if name in self else {}


def read_page(text: str, name: str) -> tuple[Page, Field]:
    """A page and its front matter. Raises `PageError` if there is none, or if it is not YAML."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    end = text.find(f"\n{_FENCE}\n", len(_FENCE)) + 1
    if end == 0 and text.endswith(f"\n{_FENCE}"):
        end = len(text) - len(_FENCE)
    if not text.startswith(f"{_FENCE}\n") or end == 0:
        raise PageError(PageProblem(name, 1, f"the page must start with front matter between two lines {_FENCE!r}"))
    front = read_yaml(text[len(_FENCE) + 1 : end], name, 2)
    if front is None or front.node.id != "mapping":
        raise PageError(PageProblem(name, 2, "the front matter must be a mapping"))
    lines = {str(key.value): int(key.start_mark.line) + 2 for key, _ in front.node.value}
    return Page(name=name, text=text, body_line=text.count("\n", 0, end) + 2, lines=lines), front


def read_yaml(text: str, name: str, first: int = 1) -> Field | None:
    """A YAML text that starts on the line ``first`` of a file; None if it is empty. Raises `PageError`."""
    import yaml

    try:
        node = yaml.compose(text, Loader=_loader())
        return None if node is None else Field(name, "", node, first)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"not YAML: {error.problem}"
        if error.problem and "mapping values are not allowed" in error.problem:
            reason += "; a text with a colon and a blank in it needs quotes"
        raise PageError(PageProblem(name, mark.line + first if mark else 1, reason)) from None
    except yaml.YAMLError as error:
        raise PageError(PageProblem(name, 1, f"not YAML: {error}")) from None


class Entry(Protocol):
    """Result of reading a page."""

    @property
    def id(self) -> str: ...


Read = TypeVar("Read", bound=Entry)


@dataclass(frozen=True, slots=True)
class Kind(Generic[Read]):
    """``read`` gets a page's path, the page and its front matter, and may raise `PageError`.

    A folder of a team may hold all kinds of pages: ``is_one`` tells them apart by their bytes. ``unread`` are fields
    that ``read`` does not look at; they are not parsed.
    """

    name: str
    folder: Path
    is_one: Callable[[bytes], bool]
    read: Callable[[Path, Page, Field], tuple[Read, Page]]
    unread: tuple[str, ...] = ()


NO_READERS = frozenset(("causes", "defects", "mechanisms", "store", "threads"))
"""The folders of `KNOWLEDGE` without code or data that pages are read with."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Read]):
    """The entries of all pages that loaded, by id; ``version`` changes with every page and every module of a check."""

    entries: Mapping[str, Read]
    pages: Mapping[str, Page]
    problems: tuple[PageProblem, ...]
    version: str


def load(
    kind: Kind[Read],
    folders: Iterable[Path] = (),
    narrow: Callable[[bytes], bytes] | None = None,
    builtin: Path = KNOWLEDGE,
) -> Loaded[Read]:
    """Load the built-in pages of a kind, then those of further folders (or single files).

    A page that breaks its format, an id that occurs twice and an absent folder become problems. ``narrow`` gives what
    is needed of a built-in page's bytes (empty: nothing), where they are not compiled (`kb.pages.compiled`) and cannot
    be.
    ``builtin`` has the built-in pages, each kind in its folder.
    """
    roots = tuple(folders)
    own = builtin / kind.folder.name
    compiled = CompiledPages(own, kind.name, KNOWLEDGE, NO_READERS) if builtin == KNOWLEDGE else None
    loaded: Loaded[Read] | None = compiled.load() if compiled else None
    if loaded is None:
        keeps = compiled is not None and compiled.can_be_kept
        above = f"{KNOWLEDGE.name}/{own.name}"
        loaded = _read(kind, (own,), None if keeps else narrow, above=above)
        if compiled is not None and keeps and not loaded.problems:
            compiled.keep(loaded)
    return _read(kind, roots, first=loaded) if roots else loaded


def _read(
    kind: Kind[Read],
    roots: Iterable[Path],
    narrow: Callable[[bytes], bytes] | None = None,
    first: Loaded[Read] | None = None,
    above: str = "",
) -> Loaded[Read]:
    """The pages below ``roots``, after those that are there already. Without such, the version covers shared modules.

    The version depends on the pages alone, not on how many folders they are in. ``above`` as in `discover`.
    """
    import hashlib  # 3 ms, for those who read pages

    entries = dict(first.entries) if first is not None else {}
    pages = dict(first.pages) if first is not None else {}
    problems = list(first.problems) if first is not None else []
    digest = hashlib.sha256(first.version.encode() if first is not None else _checks())
    unchanged = digest.digest()
    for root in roots:
        if not root.exists():
            problems.append(PageProblem(str(root), 1, "no such folder"))
        for module in sorted(root.rglob("*.py")) if first is not None else ():
            digest.update(module.read_bytes())
        for path, name in discover(root, above):
            try:
                content = path.read_bytes()
                if not kind.is_one(content):
                    continue
                # A single page is known by its name: the same page elsewhere is the same knowledge.
                known_as = name if root.is_dir() else root.name
                digest.update(known_as.encode() + b"\0" + content)
                if narrow is not None and not (content := narrow(content)):
                    continue
                entry, page = kind.read(path, *read_page(without(content.decode(), kind.unread), name))
                if entry.id in entries:
                    raise PageError(page.problem(f"id {entry.id!r} is taken by {pages[entry.id].name}", "id"))
                entries[entry.id], pages[entry.id] = entry, page
            except PageError as error:
                problems.append(error.problem)
            except (OSError, UnicodeDecodeError) as error:
                problems.append(PageProblem(name, 1, f"cannot be read: {error}"))
    ordered = sorted(entries)
    return Loaded(
        entries={key: entries[key] for key in ordered},
        pages=MappingProxyType({key: pages[key] for key in ordered}),
        problems=tuple(problems),
        version=first.version if first is not None and digest.digest() == unchanged else digest.hexdigest()[:12],
    )


def without(text: str, fields: Collection[str]) -> str:
    """The page with these fields of its front matter left blank."""
    end = text.find(f"\n{_FENCE}\n") + 1
    block = rf"^(?:{'|'.join(fields)}):.*\n(?:[ -].*\n|\n)*"
    front = re.sub(block, lambda found: "\n" * found[0].count("\n"), text[:end], flags=re.M) if fields else text[:end]
    return front + text[end:]


def _checks() -> bytes:
    return b"".join(path.read_bytes() for path in sorted((KNOWLEDGE / "checks").glob("*.py")))


def chapters(page: Page) -> tuple[Page, Mapping[str, Page]]:
    """The page without the chapters of its checks, and these chapters by the ids of the checks. Their bodies are not
    looked at: a line that begins such a chapter is never a line of an example."""
    opening = f"\n## {CHECK}"
    whole, *texts = page.text.split(opening)
    line = whole.count("\n") + 1  # before the chapter
    found: dict[str, Page] = {}
    for text in texts:
        name = text.partition("\n")[0].strip()
        if name in found:
            raise PageError(PageProblem(page.name, line + 1, f"two chapters for the check {name!r}"))
        found[name] = Page(name=page.name, text=opening[1:] + text, body_line=line + 1, before=line)
        line += text.count("\n") + 1
    return (replace(page, text=whole) if texts else page), found


def discover(root: Path, above: str = "") -> Iterator[tuple[Path, str]]:
    """The pages under a folder, sorted, with the names that messages show, which begin with ``above`` (default: the
    folder's name). README.md and _*.md are not pages."""
    if root.is_file():
        yield root, root.as_posix()
        return
    above = above or (f"kb/{root.name}" if root.parent == KNOWLEDGE else root.name)
    for path in sorted(root.rglob("*.md")):
        if path.name != "README.md" and not path.name.startswith("_"):
            yield path, f"{above}/{path.relative_to(root).as_posix()}"


def is_page_id(word: str) -> bool:
    """Whether a word consists of lower-case words joined by ``-``."""
    return all(part.isascii() and part.isalnum() and part == part.lower() for part in word.split("-"))


def one_id(field: Field) -> str:
    word = field.text()
    if not is_page_id(word):
        raise field.error(f"{word!r} must be lower-case words joined by '-'")
    return word


def page_id(fields: Fields, path: Path) -> str:
    """The page's id, which must be its file name."""
    word = fields.text("id")
    if word != path.stem or not is_page_id(word):
        raise fields["id"].error(f"{word!r} must be the file's name {path.stem!r}: lower-case words joined by '-'")
    return word
