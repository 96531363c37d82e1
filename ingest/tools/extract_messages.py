"""The index of error messages, from the frameworks' own sources, read statically: nothing is ever imported or run.

``python -m trainmedic.ingest.tools.extract_messages --checkout DIR …`` reads the releases of git checkouts (bare or
not); ``--wheels DIR --package NAME`` those of the wheels, or archives of a wheel's Python files, in a folder. The file
of the package is replaced.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from trainmedic.ingest.tools.extract_message_source import Message, messages_of
from trainmedic.ingest.tools.history import History, package_of
from trainmedic.kb.error_messages.packages import Package, names, package, skipped
from trainmedic.kb.error_messages.template import anchors, skeleton
from trainmedic.kb.versions import version_key

DATA = Path(__file__).resolve().parents[2] / "kb" / "error_messages" / "data"
OLDEST = "2024-01-01"
MOST_RELEASES = 40
FEW_MINORS = 12
MOST_PLACES = 1
MODELS_WITH_MESSAGE = 3
"""Models whose code must have a message that only code of models has."""
ANCHOR_WORDS = 3
SHORTEST_ANCHOR = 8
"""Characters of an anchor of a single word."""
EARLY, EARLIEST = 160, 70
"""Characters of a template in which an anchor is preferred, the first if it is rare there: messages are quoted without
their end."""
RARE = 3

Files: TypeAlias = dict[str, str]
"""Path → an identifier of the content, the same for the same content in another release."""


@dataclass(frozen=True, slots=True)
class Release:
    """One release: its files, and how to read one of them."""

    version: str
    files: Files
    read: Callable[[str], str]


@dataclass(slots=True)
class Entry:
    """A message through the releases: the first and the last that have it, and its places in the last. ``files`` are
    all that ever had it."""

    first: int
    last: int
    places: list[tuple[str, Message]]
    files: set[str] = field(default_factory=set)


def git_releases(checkout: Path, name: str) -> Iterator[Release]:
    """The last release of each minor version since `OLDEST`, all of them if minors are few; lowest first."""
    history = History(checkout, name)
    recent = [
        (version, tag)
        for version, tag in history.releases
        if history.git("log", "-1", "--format=%cs", tag).strip() >= OLDEST
    ]
    minors = {version_key(version).release[:2]: (version, tag) for version, tag in recent}
    for version, tag in (recent if len(minors) < FEW_MINORS else list(minors.values()))[-MOST_RELEASES:]:
        files: Files = {}
        for line in history.git("ls-tree", "-r", tag).splitlines():
            description, _, path = line.partition("\t")
            files[path] = description.split()[2]
        yield Release(version, files, partial(_blob, history, files))


def _blob(history: History, files: Files, path: str) -> str:
    return history.git("cat-file", "blob", files[path])


def wheel_releases(folder: Path, about: Package) -> Iterator[Release]:
    """The releases whose wheels are in a folder, lowest first."""
    wheels = {path.name.split("-")[1]: path for path in folder.glob(f"{about.name.replace('-', '_')}-*.whl")}
    # The repository has the package in a folder that the wheel lacks: src/transformers/ is transformers/.
    above = about.code[0][: about.code[0].index(about.roots[0])] if about.roots else ""
    for version in sorted(wheels, key=version_key):
        with zipfile.ZipFile(wheels[version]) as archive:
            members = {above + member.filename: member for member in archive.infolist()}
            files = {path: f"{member.CRC:08x}{member.file_size:x}" for path, member in members.items()}
            texts = {
                path: archive.read(member).decode("utf-8", "replace")
                for path, member in members.items()
                if path.startswith(about.code)
            }
        yield Release(version, files, texts.__getitem__)


def collected(releases: Iterable[Release], about: Package) -> tuple[list[str], dict[tuple[str, str], Entry]]:
    """(versions, entry by skeleton and kind) of the releases, which come lowest first."""
    ignored = skipped()
    versions: list[str] = []
    entries: dict[tuple[str, str], Entry] = {}
    parsed: dict[str, tuple[Message, ...]] = {}
    for index, release in enumerate(releases):
        versions.append(release.version)
        for path in sorted(release.files, key=_importance):
            if (
                not path.endswith(".py")
                or not path.startswith(about.code)
                or any(part in f"/{path}" for part in ignored)
            ):
                continue
            content = release.files[path]
            if content not in parsed:
                parsed[content] = tuple(messages_of(release.read(path)))
            for message in parsed[content]:
                if _is_of_model(path):
                    message = replace(message, template=_of_any_model(message.template, path))
                key = (skeleton(message.template), message.kind)
                entry = entries.setdefault(key, Entry(index, index, []))
                if entry.last != index:
                    entry.last, entry.places = index, []
                entry.places.append((path, message))
                entry.files.add(path)
    return versions, {key: entry for key, entry in entries.items() if _is_general(entry)}


def _is_general(entry: Entry) -> bool:
    """Whether a message is of shared code, or of several models of a library that copies their code."""
    return len(entry.files) >= MODELS_WITH_MESSAGE or not all(map(_is_of_model, entry.files))


def _is_of_model(path: str) -> bool:
    return "transformers/models/" in path and "transformers/models/auto/" not in path


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


def table(about: Package, versions: Sequence[str], entries: dict[tuple[str, str], Entry]) -> str:
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
        if anchor is not None:
            kept.append((key, anchor))
    places = {key: entries[key].places[:MOST_PLACES] for key, _ in kept}
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when it wrote, 2 on misuse."""
    parser = argparse.ArgumentParser(prog="python -m trainmedic.ingest.tools.extract_messages", description=__doc__)
    parser.add_argument("--checkout", type=Path, nargs="*", default=[], help="git checkouts or git directories")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels")
    parser.add_argument("--package", choices=names(), nargs="*", default=[], help="the packages of the wheels")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the packages' files")
    args = parser.parse_args(argv)
    sources: list[tuple[str, Iterable[Release]]] = [
        (name, git_releases(checkout, name)) for checkout in args.checkout if (name := package_of(checkout))
    ]
    if args.wheels is not None:
        sources += [(name, wheel_releases(args.wheels, package(name))) for name in args.package]
    if not sources:
        parser.error("give --checkout, or --wheels with --package")
    args.data.mkdir(parents=True, exist_ok=True)
    for name, releases in sources:
        versions, entries = collected(releases, package(name))
        path = args.data / f"{name}.json"
        path.write_text(table(package(name), versions, entries), encoding="utf-8")
        sys.stdout.write(f"{name}: {len(entries)} messages of {len(versions)} releases, {path.stat().st_size} bytes\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
