"""Changes between two releases of a package: options, messages, functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from trainmedic.kb.error_messages import packages
from trainmedic.kb.error_messages.packages import Package
from trainmedic.kb.frameworks.book import Entry
from trainmedic.kb.lazy import regex
from trainmedic.kb.sources.help import help_texts
from trainmedic.kb.sources.messages import collected
from trainmedic.kb.sources.options import extract
from trainmedic.kb.sources.statements import Message
from trainmedic.kb.sources.syntax import module_of
from trainmedic.kb.sources.tree import SourceTree

Evidence = Literal["alias", "message", "help"]
_LEAST_HELP = 24
"""Characters of a description that two options do not share by chance."""
_WORD = regex(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """``evidence``: the new option accepts the old name, a message names both, or both are described alike."""

    old: str
    new: str
    evidence: Evidence
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDefault:
    """A default that is another one; ``owner`` is empty where it is that of all classes or commands."""

    option: str
    owner: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionChanges:
    """Names are sorted; those that were renamed are among added and removed as well."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: tuple[Rename, ...]
    defaults: tuple[NewDefault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A message and its file."""

    path: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChanges:
    new: tuple[Placed, ...]
    gone: tuple[Placed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function, named with its classes. ``before`` or ``after`` is its signature, None where it does not exist."""

    path: str
    name: str
    before: str | None
    after: str | None


def option_changes(framework: str, before: SourceTree, after: SourceTree) -> OptionChanges:
    """Raises `NotFound` where a release declares no options."""
    old, new = extract(framework, before), extract(framework, after)
    added, removed = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    return OptionChanges(
        added=tuple(added),
        removed=tuple(removed),
        renamed=tuple(_renames(old, new, before, after)),
        defaults=tuple(change for name in sorted(old.keys() & new.keys()) for change in _defaults(name, old, new)),
    )


def message_changes(before: SourceTree, after: SourceTree) -> MessageChanges:
    """Messages of the later release that the earlier one does not have, and the reverse; single models are left out."""
    known = before.package in packages.names()
    about = packages.package(before.package) if known else Package(before.package, "", "", ("",))
    _, entries = collected([before, after], about, models=False)
    sides: tuple[list[Placed], list[Placed]] = ([], [])
    for entry in entries.values():
        if entry.first == entry.last:
            path, message = entry.places[0]
            sides[entry.first].append(Placed(path=path.removeprefix(about.above), message=message))
    gone, new = (tuple(sorted(side, key=lambda each: (each.path, each.message.line))) for side in sides)
    return MessageChanges(new=new, gone=gone)


def function_changes(before: SourceTree, after: SourceTree) -> tuple[Function, ...]:
    """The functions that are new, gone or written otherwise, comments and docstrings apart."""
    found: list[Function] = []
    for path in sorted({*before.files, *after.files}):
        if not path.endswith(".py") or before.files.get(path) == after.files.get(path):
            continue
        texts = [tree.text(path).splitlines() if path in tree else [] for tree in (before, after)]
        old, new = (functions_of("\n".join(lines)) for lines in texts)
        for name in dict.fromkeys((*old, *new)):
            sides = [side.get(name) for side in (old, new)]
            written = [
                each and lines[each.lineno - 1 : each.end_lineno] for each, lines in zip(sides, texts, strict=True)
            ]
            if written[0] != written[1] and len({each and _code(each) for each in sides}) == 2:
                was, now = (f"({ast.unparse(each.args)})" if each is not None else None for each in sides)
                found.append(Function(path=path, name=name, before=was, after=now))
    return tuple(found)


def _defaults(name: str, old: Mapping[str, Entry], new: Mapping[str, Entry]) -> Iterator[NewDefault]:
    was, now = old[name], new[name]
    owners = [owner for owner in now["in"] if owner in was["in"]]
    pairs = {owner: (_default(was, owner), _default(now, owner)) for owner in owners}
    changed = {owner: pair for owner, pair in pairs.items() if not _same(*pair)}
    if changed and len(changed) == len(pairs) and len({repr(pair) for pair in changed.values()}) == 1:
        changed = {"": next(iter(changed.values()))}
    for owner, (before, after) in changed.items():
        yield NewDefault(option=name, owner=owner, before=before, after=after)


def _default(entry: Entry, owner: str) -> object:
    value: object = entry.get("default_by", {}).get(owner, entry.get("default"))
    return value


def _same(left: object, right: object) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _renames(
    old: Mapping[str, Entry], new: Mapping[str, Entry], before: SourceTree, after: SourceTree
) -> Iterator[Rename]:
    removed, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    if not removed or not added:
        return
    told = _deprecations(before, after)
    was, now = _described(before, after, removed, old), _described(after, before, added, new)
    for name in removed:
        plain = name.replace("-", "_")
        alias = next((key for key in new if plain in {_plain(each) for each in new[key].get("aliases", ())}), None)
        message = next(
            ((key, text) for text in told if plain in (words := _words(text)) for key in added if _plain(key) in words),
            None,
        )
        text = was.get(name, "")
        unlike_others = len(text) >= _LEAST_HELP and list(was.values()).count(text) == 1
        alike = [key for key in added if unlike_others and now.get(key) == text]
        if alias is not None:
            yield Rename(old=name, new=alias, evidence="alias", text="")
        elif message is not None:
            yield Rename(old=name, new=message[0], evidence="message", text=message[1])
        elif len(alike) == 1:
            yield Rename(old=name, new=alike[0], evidence="help", text=text)


def _described(tree: SourceTree, other: SourceTree, names: Sequence[str], side: Mapping[str, Entry]) -> dict[str, str]:
    """What a release says of options that the other lacks, in files that are not the same there."""
    words = {name.rpartition(".")[2].replace("-", "_") for name in names}
    files = {
        path: digest
        for path, digest in tree.files.items()
        if other.files.get(path) != digest and words & set(_WORD.findall(tree.text(path).replace("-", "_")))
    }
    owners = {owner for name in names for owner in side[name]["in"]}
    return {key: " ".join(each.values()) for key, each in help_texts(replace(tree, files=files), names, owners).items()}


def _deprecations(*trees: SourceTree) -> tuple[str, ...]:
    about = Package(trees[0].package, "", "", ("",))
    _, entries = collected(trees, about, models=False)
    return tuple(entry.places[0][1].template for entry in entries.values() if "deprecat" in entry.places[0][1].template)


def _words(text: str) -> frozenset[str]:
    return frozenset(_plain(word.rstrip(".")) for word in _WORD.findall(text))


def _plain(name: object) -> str:
    return str(name).lstrip("-").replace("-", "_")


@lru_cache(maxsize=32)
def functions_of(text: str) -> Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module, named with their classes."""
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}

    def visit(node: ast.AST, above: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[above + child.name] = child
            elif isinstance(child, (ast.ClassDef, ast.If, ast.Try)):
                visit(child, f"{above}{child.name}." if isinstance(child, ast.ClassDef) else above)

    visit(module_of(text), "")
    return found


def _code(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function as it runs: without comments and its docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return "".join(map(ast.dump, (node.args, *node.decorator_list, *body)))
