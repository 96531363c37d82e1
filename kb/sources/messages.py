"""A package's messages in one or several releases, as the table that `kb.error_messages` looks them up in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from trainmedic.kb.error_messages.packages import Package
from trainmedic.kb.error_messages.tables import MessageTable, Place, Row, table_text
from trainmedic.kb.error_messages.template import anchors, skeleton
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.sources.statements import Message, messages_of
from trainmedic.kb.sources.tree import SourceTree
from trainmedic.kb.versions import version_key

MODELS_WITH_MESSAGE = 3
"""Models whose code must have a message that only code of models has."""
ANCHOR_WORDS = 3
SHORTEST_ANCHOR = 8
"""Characters of an anchor of a single word."""
EARLY, EARLIEST = 160, 70
"""Characters of a template in which an anchor is preferred, the first if it is rare there: messages are quoted without
their end."""
RARE = 3


@dataclass(slots=True)
class Entry:
    """A message through the releases: the first and the last that have it, and its places in the last. ``files`` are
    all that ever had it."""

    first: int
    last: int
    places: list[tuple[str, Message]]
    files: set[str] = field(default_factory=set)


def collected(
    trees: Iterable[SourceTree], about: Package, *, models: bool = True, general: bool = True
) -> tuple[list[str], dict[tuple[str, str], Entry]]:
    """(versions, entry by skeleton and kind) of releases of a package, which come lowest first.

    ``models``: also of the code of single models, which is most of transformers; ``general``: of these only what
    several of them say, and nothing that has too little text to be looked up by.
    """
    versions: list[str] = []
    entries: dict[tuple[str, str], Entry] = {}
    parsed: dict[str, tuple[Message, ...]] = {}
    for index, tree in enumerate(trees):
        versions.append(tree.version)
        for path in sorted(filter(about.has, tree.paths()), key=_importance):
            if not models and is_of_model(path):
                continue
            content = tree.files[path]
            if content not in parsed:
                parsed[content] = tuple(messages_of(tree.text(path), every=not general))
            for message in parsed[content]:
                if is_of_model(path):
                    message = replace(message, template=_of_any_model(message.template, path))
                key = (skeleton(message.template), message.kind)
                entry = entries.setdefault(key, Entry(index, index, []))
                if entry.last != index:
                    entry.last, entry.places = index, []
                entry.places.append((about.above + path, message))
                entry.files.add(path)
    return versions, {key: entry for key, entry in entries.items() if not general or _is_general(entry)}


def with_release(known: MessageTable | None, tree: SourceTree, about: Package) -> str:
    """A package's table with a further release, newer than its others. Raises `InvalidRequest` for one that is not."""
    _, found = collected([tree], about)
    if known is None or about.newest:
        return table(about, [tree.version], found)
    versions = known.releases
    if version_key(tree.version) <= version_key(versions[-1]):
        raise InvalidRequest(f"{about.name} is read up to {versions[-1]}", hint="only newer releases are added")
    entries = {}
    for before in known:
        said = [
            (place.file, Message(before.template, before.kind, place.line, place.function, place.condition))
            for place in before.places
        ]
        first, last = versions.index(before.first), versions.index(before.last)
        entries[skeleton(before.template), before.kind] = Entry(first, last, said)
    for key, entry in found.items():
        first = entries[key].first if key in entries else len(versions)
        entries[key] = Entry(first, len(versions), entry.places)
    return table(about, [*versions, tree.version], entries)


def _is_general(entry: Entry) -> bool:
    """Whether a message is of shared code, or of several models of a library that copies their code."""
    return len(entry.files) >= MODELS_WITH_MESSAGE or not all(map(is_of_model, entry.files))


def is_of_model(path: str) -> bool:
    return path.startswith("transformers/models/") and not path.startswith("transformers/models/auto/")


def _of_any_model(template: str, path: str) -> str:
    """The template with a hole in place of the model's name, which is all that copies of its code differ in."""
    model = _letters(path.partition("/models/")[2].partition("/")[0])
    words = template.split(" ")
    return " ".join(
        "{model}" + word[len(word.rstrip(".,:;!?")) :] if _letters(word) == model and "{" not in word else word
        for word in words
    )


def _letters(word: str) -> str:
    return "".join(character for character in word.lower() if character.isalnum())


def _importance(path: str) -> tuple[bool, int, str]:
    """Shared code before that of single models."""
    return ("/models/" in path, path.count("/"), path)


def table(
    about: Package, versions: Sequence[str], entries: dict[tuple[str, str], Entry], *, most_places: int = 1
) -> str:
    """The text of a package's table. Messages without an anchor are left out where only one place of each is listed."""
    templates = {key: entry.places[0][1].template for key, entry in entries.items()}
    frequency = Counter(
        template[start:end]
        for template in templates.values()
        for start, end in {(start, end) for start, end, _ in anchors(template, ANCHOR_WORDS)}
    )
    rows = [
        Row(
            *(templates[key], *_anchor(templates[key], frequency)),
            *(key[1], entry.first, entry.last),
            [Place(path, each.line, each.function, each.condition) for path, each in entry.places[:most_places]],
        )
        for key, entry in entries.items()
    ]
    return table_text(about.name, versions, [row for row in rows if row.words or most_places > 1])


def _anchor(template: str, frequency: Counter[str]) -> tuple[int, int]:
    """(word at which it begins, words) of the stretch by which a message is looked up, as `Row` has it: as many words
    as possible, early, rare, not at the template's ends (where a quotation mark may touch it)."""
    options = [
        (start, end, words)
        for start, end, words in anchors(template, ANCHOR_WORDS)
        if words > 1 or end - start >= SHORTEST_ANCHOR
    ]
    if not options:
        return 0, 0
    most = max(words for _, _, words in options)
    start, end, _ = min(
        (option for option in options if option[2] == most),
        key=lambda option: _preference(option[0], option[1], template, frequency),
    )
    return template.count(" ", 0, start), -1 if template[end - 1 : end + 1] == "={" else most


def _preference(start: int, end: int, template: str, frequency: Counter[str]) -> tuple[int, ...]:
    count = frequency[template[start:end]]
    return end > EARLY, start == 0 or end == len(template), count > RARE, end > EARLIEST, count, start
