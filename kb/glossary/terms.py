"""The glossary: concepts of training trouble, found in text of either language, sloppy wording included.

Text and terms become the same tokens: Latin words (lower case, without plural s) and single Han characters. A term
is a path through a trie of tokens, so a Latin term only matches whole words, a Chinese one matches anywhere, and
``grad_norm``, ``Grad Norms`` and ``grad-norm`` are the same. Sentence ends and commas are tokens no term contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.lazy import regex

if TYPE_CHECKING:
    import yaml

BUILT_IN = Path(__file__).with_name("glossary.yaml")
KINDS = (
    *("symptom", "metric", "setting", "component", "algorithm", "framework"),
    *("model", "hardware", "error", "data", "concept"),
)

_TOKEN = regex(r"[a-z0-9]+(?:\.[0-9]+)*|[\u3400-\u9fff]|[\n,;，。；！？!?、]|\.(?=\s|$)")
_BREAKS = frozenset("\n,;，。；！？!?、.")
_WORD = regex(r"[a-z0-9]")
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_KEPT = {ord(mark): mark for mark in "，；！？"}  # full-width, but sentence marks of their own
_TRANSLATION: dict[int, int | str] = {**_FULL_WIDTH, **_KEPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """One thing people mean. ``en`` and ``zh`` hold its wordings, the usual one first."""

    id: str
    kind: str
    en: tuple[str, ...]
    zh: tuple[str, ...]
    signals: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A concept found at ``text[start:end]`` (code points of the text that was given)."""

    concept: str
    start: int
    end: int
    text: str


class _Node:
    """A state of the trie: where each next token leads, and the concept whose term ends here."""

    __slots__ = ("concept", "next")

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.concept: str = ""


class Glossary:
    """All concepts. Immutable after construction; every method is pure and safe to call from any thread."""

    __slots__ = ("_root", "concepts", "version")

    def __init__(self, concepts: Mapping[str, Concept], version: str = "") -> None:
        self.concepts: Mapping[str, Concept] = MappingProxyType(dict(concepts))
        self.version = version
        self._root = _Node()
        for concept in self.concepts.values():
            for term in (*concept.en, *concept.zh):
                self._add(term, concept.id)

    def _add(self, term: str, concept: str) -> None:
        tokens = tokens_of(term)
        if not tokens or not _BREAKS.isdisjoint(tokens):
            raise InvalidPage(f"glossary: {concept}: term {term!r} holds no word, or a sentence mark")
        node = self._root
        for token in tokens:
            node = node.next.setdefault(token, _Node())
        if node.concept not in ("", concept):
            raise InvalidPage(f"glossary: {term!r} belongs to {node.concept} and to {concept}")
        node.concept = concept

    def find(self, text: str) -> tuple[Match, ...]:
        """The concepts in ``text``, in order; of overlapping terms the first, of those the longest."""
        places = list(_TOKEN.finditer(_normalise(text)))
        tokens = [_stem(place.group()) for place in places]
        return tuple(
            Match(concept, start := places[first].start(), end := places[last].end(), text[start:end])
            for concept, first, last in self._walk(tokens)
        )

    def ids(self, text: str) -> tuple[str, ...]:
        """The ids of the concepts in ``text``, each once, in order of appearance."""
        tokens = list(tokens_of(text))
        return tuple(dict.fromkeys(concept for concept, _, _ in self._walk(tokens)))

    def expand(self, text: str, language: str = "en") -> str:
        """The gist: the concepts of ``text`` by their usual name in ``language`` (the dense embedder reads English)."""
        return self.gist(self.ids(text), language)

    def gist(self, concepts: Iterable[str], language: str = "en") -> str:
        """The usual names of concepts, by their ids."""
        names = []
        for concept in concepts:
            entry = self.concepts[concept]
            terms = entry.zh if language == "zh" and entry.zh else entry.en
            names.append(terms[0])
        return ", ".join(names)

    def words(self, text: str) -> tuple[str, ...]:
        """Usual wordings of the concepts of ``text`` in both languages, for an index of words. No word twice."""
        words: dict[str, None] = {}
        for concept in self.ids(text):
            entry = self.concepts[concept]
            words.update(dict.fromkeys((*entry.en[:2], *entry.zh[:2])))
        return tuple(words)

    def _walk(self, tokens: list[str]) -> Iterator[tuple[str, int, int]]:
        """Longest matches from left to right over stemmed tokens: (concept, first token, last token)."""
        root = self._root.next
        position, count = 0, len(tokens)
        while position < count:
            node = root.get(tokens[position])
            if node is None:
                position += 1
                continue
            found, end, cursor = node.concept, position, position + 1
            while cursor < count:
                following = node.next.get(tokens[cursor])
                if following is None:
                    break
                node = following
                if node.concept:
                    found, end = node.concept, cursor
                cursor += 1
            if found:
                yield found, position, end
                position = end + 1
            else:
                position += 1


def tokens_of(text: str) -> tuple[str, ...]:
    """The tokens of a text as terms are compared by: two terms of the same tokens are one."""
    return tuple(map(_stem, _TOKEN.findall(_normalise(text))))


@cache
def load_glossary(path: Path = BUILT_IN) -> Glossary:
    """Read a glossary file. Raises `InvalidPage` with the line where it breaks its format."""
    return Glossary(_concepts(path))


def _concepts(path: Path) -> dict[str, Concept]:
    import yaml

    text = path.read_text(encoding="utf-8")
    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError as error:
        raise InvalidPage(f"{path.name}: not YAML: {error}") from error
    concepts: dict[str, Concept] = {}
    if not isinstance(node, yaml.SequenceNode):
        raise InvalidPage(f"{path.name}: must be a list of concepts")
    for item in node.value:
        concept = _concept(item, path.name)
        if concept.id in concepts:
            raise InvalidPage(
                f"{path.name}:{item.start_mark.line + 1}: id {concept.id!r} is used twice; give one another id"
            )
        concepts[concept.id] = concept
    return concepts


def _concept(item: yaml.Node, page: str) -> Concept:
    import yaml

    where = f"{page}:{item.start_mark.line + 1}"
    fields: dict[str, Any] = {}
    if not isinstance(item, yaml.MappingNode):
        raise InvalidPage(f"{where}: a concept is a mapping")
    for key, value in item.value:
        if isinstance(value, yaml.SequenceNode):
            fields[key.value] = tuple(str(term.value).strip() for term in value.value)
        else:
            fields[key.value] = str(value.value).strip()
    strange = sorted(set(fields) - {"id", "kind", "en", "zh", "signals", "settings"})
    if strange:
        raise InvalidPage(f"{where}: unknown field {strange[0]!r}")
    for name in ("en", "zh"):
        if not isinstance(fields.get(name), tuple) or not fields[name]:
            raise InvalidPage(f"{where}: {name} must be a list of terms")
    if fields.get("kind") not in KINDS or not fields.get("id"):
        raise InvalidPage(f"{where}: id and kind ({', '.join(KINDS)}) are needed")
    return Concept(
        id=fields["id"],
        kind=fields["kind"],
        en=fields["en"],
        zh=fields["zh"],
        signals=fields.get("signals", ()),
        settings=fields.get("settings", ()),
    )


def _normalise(text: str) -> str:
    """Lower case, full-width forms made ordinary. The length stays, so positions are the text's own."""
    folded = text.translate(_TRANSLATION).lower()
    if len(folded) == len(text):
        return folded
    return "".join(low if len(low := char.lower()) == 1 else char for char in text.translate(_TRANSLATION))


@lru_cache(maxsize=8192)
def _stem(token: str) -> str:
    """A word without its plural s; anything else unchanged. Terms and texts go through it alike."""
    if len(token) <= 3 or not token.endswith("s") or not _WORD.match(token):
        return token
    if token.endswith(("sses", "ches", "shes", "xes")):
        return token[:-2]
    return token if token.endswith(("ss", "us", "is")) else token[:-1]
