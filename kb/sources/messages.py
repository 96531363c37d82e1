"""A package's messages in one or several releases, as the table that `kb.error_messages` looks them up in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from trainmedic.kb.error_messages.packages import Package
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


def with_release(text: str, tree: SourceTree, about: Package) -> str:
    """A package's table with a further release, newer than its others. Raises `InvalidRequest` for one that is not."""
    _, found = collected([tree], about)
    if not text or about.newest:
        return table(about, [tree.version], found)
    content = json.loads(text)
    versions = content["releases"]
    if version_key(tree.version) <= version_key(versions[-1]):
        raise InvalidRequest(f"{about.name} is read up to {versions[-1]}", hint="only newer releases are added")
    entries = {}
    for template, kind, _, _, first, last, *places in content["messages"]:
        said = [
            (content["files"][file], Message(template, content["kinds"][kind], line, content["functions"][name], when))
            for file, line, name, when in places
        ]
        entries[skeleton(template), content["kinds"][kind]] = Entry(first, last, said)
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
    """The package's file: a header, then one message a line.

    A message is ``[template, kind, anchor start, anchor length, first release, last release, place, …]``, a place
    ``[file, line, function, condition]``. Kinds, releases, files and functions are positions in the header's lists.
    """
    templates = {key: entry.places[0][1].template for key, entry in entries.items()}
    frequency = Counter(
        template[start:end]
        for template in templates.values()
        for start, end in {(start, end) for start, end, _ in anchors(template, ANCHOR_WORDS)}
    )
    kinds = sorted({kind for _, kind in entries})
    kept: list[tuple[tuple[str, str], tuple[int, int]]] = []
    for key in sorted(entries):
        anchor = _anchor(templates[key], frequency)
        if anchor is not None or most_places > 1:
            kept.append((key, anchor or (0, 0)))
    places = {key: entries[key].places[:most_places] for key, _ in kept}
    files = sorted({path for shown in places.values() for path, _ in shown})
    functions = sorted({message.function for shown in places.values() for _, message in shown})
    file_number, function_number = ({name: at for at, name in enumerate(listed)} for listed in (files, functions))
    lines = [
        [
            templates[key],
            kinds.index(key[1]),
            start,
            end - start,
            entries[key].first,
            entries[key].last,
            *(
                [file_number[path], message.line, function_number[message.function], message.condition]
                for path, message in places[key]
            ),
        ]
        for key, (start, end) in kept
    ]
    head = {"package": about.name, "releases": list(versions), "kinds": kinds}
    return "\n".join(
        (
            "{" + ",\n".join(f"{json.dumps(name)}: {_compact(value)}" for name, value in head.items()) + ",",
            f'"files": {_listed(files)},',
            f'"functions": {_listed(functions)},',
            f'"messages": {_listed(lines)}}}\n',
        )
    )


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _listed(values: Sequence[object]) -> str:
    return "[\n" + ",\n".join(map(_compact, values)) + "\n]"


def _anchor(template: str, frequency: Counter[str]) -> tuple[int, int] | None:
    """The stretch by which a message is looked up: as many words as possible, early, rare, not at the template's ends
    (where a quotation mark may touch it); None if there is none."""
    options = [
        (start, end, words)
        for start, end, words in anchors(template, ANCHOR_WORDS)
        if words > 1 or end - start >= SHORTEST_ANCHOR
    ]
    if not options:
        return None
    most = max(words for _, _, words in options)
    start, end, _ = min(
        (option for option in options if option[2] == most),
        key=lambda option: _preference(option[0], option[1], template, frequency),
    )
    return start, end


def _preference(start: int, end: int, template: str, frequency: Counter[str]) -> tuple[int, ...]:
    count = frequency[template[start:end]]
    return end > EARLY, start == 0 or end == len(template), count > RARE, end > EARLIEST, count, start
