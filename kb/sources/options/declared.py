"""Declarations of a profile → the options under each owner, a command or a class. The first owner is the main one."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import TypeAlias

from trainmedic.kb.frameworks.book import Entry, OptionsByOwner
from trainmedic.kb.frameworks.profiles import Declaration
from trainmedic.kb.sources.options import annotated, hydra, recipes
from trainmedic.kb.sources.shapes import (
    argparse_options,
    assigned_options,
    class_options,
    factory_options,
    lookup_options,
    nested_options,
    signature_options,
    with_aliases,
    yaml_options,
)
from trainmedic.kb.sources.syntax import Modules
from trainmedic.kb.sources.tree import SourceTree

Declared: TypeAlias = Iterator[tuple[str, dict[str, Entry]]]
"""Owners and their options; an owner may come several times."""


def declared(tree: SourceTree, declarations: tuple[Declaration, ...]) -> OptionsByOwner:
    owned: OptionsByOwner = {}
    for each in declarations:
        if each.unless and any(re.fullmatch(each.unless, path) for path in tree.paths()):
            continue
        for owner, options in _KINDS[each.how](tree, each):
            known = owned.get(each.beyond, {})
            own = {_spelled(each, name): entry for name, entry in options.items() if name not in known}
            if own:
                owned.setdefault(each.owner or owner, {}).update(own)
    return owned


def _spelled(each: Declaration, name: str) -> str:
    return name.replace("_", "-") if each.dashed else name


def _within(each: Declaration, path: str) -> bool:
    return not each.within or re.fullmatch(each.within, path) is not None


def _argparse(tree: SourceTree, each: Declaration) -> Declared:
    """Every module is an owner, named after its file."""
    sources = Modules.matching(tree, *each.files)
    for path in filter(lambda path: _within(each, path), sources.modules):
        options = argparse_options(sources, path, *each.functions, positional=each.positional)
        yield PurePosixPath(path).stem, with_aliases(options) if each.aliases else options


def _calls(read: Callable[[Modules, str, str], dict[str, Entry]]) -> Callable[[SourceTree, Declaration], Declared]:
    """What calls of one function declare."""

    def of_modules(tree: SourceTree, each: Declaration) -> Declared:
        sources = Modules.matching(tree, *each.files)
        for path in filter(lambda path: _within(each, path), sources.modules):
            yield PurePosixPath(path).stem, read(sources, path, each.functions[0])

    return of_modules


def _classes(tree: SourceTree, each: Declaration) -> Declared:
    """Every class is an owner; those of the first of several names come first. ``sections`` have one class each."""
    sources = Modules.matching(tree, *each.files)
    names = [
        name
        for wanted in each.names
        for name, (path, node) in sorted(sources.classes.items())
        if re.fullmatch(wanted, name) and _within(each, path) and _is_decorated(node, each.decorated)
    ]
    pairs = [(name, each.prefix) for name in dict.fromkeys(names)][: 1 if each.first else None]
    pairs += [(name, f"{section}.") for section, name in each.sections.items() if name in sources.classes]
    for name, prefix in pairs:
        if each.how == "nested":
            yield name, nested_options(sources, name, prefix, each.parts)
        else:
            options = class_options(sources, name, prefix)
            yield name, {key: entry for key, entry in options.items() if not (each.by_alias and entry.get("aliases"))}


def _is_decorated(node: ast.ClassDef, word: str) -> bool:
    return not word or any(word in ast.unparse(decorator) for decorator in node.decorator_list)


def _extending(tree: SourceTree, each: Declaration) -> Declared:
    """Classes that extend those of another package, which they import under a name with ``imported`` before it."""
    own, others = Modules.matching(tree, *each.files), Modules.matching(tree, *each.others)
    for section, names in each.unions.items():
        for name in names:
            for base in (ast.unparse(base) for _, node in own.lineage(name) for base in node.bases):
                parent = re.sub(rf"^(?:{each.imported})", "", base)
                if parent not in own.classes or parent != base:
                    yield each.owner, class_options(others, parent, f"{section}.")
            yield each.owner, class_options(own if name in own.classes else others, name, f"{section}.")


def _signatures(tree: SourceTree, each: Declaration) -> Declared:
    sources = Modules.matching(tree, *each.files)
    for name in each.names:
        yield name, {f"{each.prefix}{option}": entry for option, entry in signature_options(sources, name).items()}


def _assigned(tree: SourceTree, each: Declaration) -> Declared:
    """The names below ``names`` that at least ``least`` configuration files in Python assign, without their values."""
    sources = Modules.matching(tree, *each.files)
    counts = Counter(name for module in sources.modules.values() for name in assigned_options(module))
    common = sorted(name for name, files in counts.items() if files >= each.least)
    yield (
        each.owner,
        {name: {"type": None, "default": "<required>"} for name in common if name.partition(".")[0] in each.names},
    )


def _examples(tree: SourceTree, each: Declaration) -> Declared:
    """Files that runs start from a copy of; the basic one is the one with the shortest name."""
    paths = [path for path in tree.paths() if any(re.fullmatch(pattern, path) for pattern in each.files)]
    for path in reversed(sorted(paths, key=len)):
        yield each.owner, yaml_options(tree.text(path))


_KINDS: Mapping[str, Callable[[SourceTree, Declaration], Declared]] = {
    "argparse": _argparse,
    "factory": _calls(factory_options),
    "lookup": _calls(lookup_options),
    **dict.fromkeys(("class", "nested"), _classes),
    "extending": _extending,
    "signature": _signatures,
    "assigned": _assigned,
    "examples": _examples,
    "hydra": hydra.declared,
    "recipes": recipes.declared,
    "annotated": annotated.declared,
}
