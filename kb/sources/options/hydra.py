"""Options of Hydra files: the tree that a file and what its defaults list mounts compose."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmedic.kb.frameworks.book import Entry
from trainmedic.kb.frameworks.profiles import Declaration
from trainmedic.kb.sources.shapes import leaves, yaml_tree
from trainmedic.kb.sources.tree import SourceTree


def declared(tree: SourceTree, each: Declaration) -> Iterator[tuple[str, dict[str, Entry]]]:
    for name in each.names:
        if f"{each.prefix}{name}.yaml" in tree:
            yield name, leaves(_composed(tree, each.prefix, name))


def _composed(tree: SourceTree, folder: str, name: str) -> dict[str, Any]:
    """A Hydra file below ``folder`` with what its defaults list mounts, as Hydra composes them."""
    composition = _Composition(tree=tree, folder=folder)
    composition.mount(name, (), ())
    return composition.whole


_OVERRIDE = "override "


@dataclass(slots=True, kw_only=True)
class _Composition:
    """``chosen`` is the file of each group that was mounted, and of each ``override``."""

    tree: SourceTree
    folder: str
    whole: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        path = f"{self.folder}{name}.yaml"
        return self.tree.text(path) if path in self.tree else ""

    def mount(self, name: str, at: tuple[str, ...], above: tuple[str, ...]) -> None:
        """Put a file at its place, what it builds on before or after it. What is not there is left out."""
        own = yaml_tree(self.text(name))
        listed = own.pop("defaults", [])
        pairs = [next(iter(each.items())) if isinstance(each, dict) else (str(each), "") for each in listed]
        self.chosen.update({key: str(option) for key, option in pairs if key.startswith(_OVERRIDE)})
        for key, option in pairs if ("_self_", "") in pairs else [*pairs, ("_self_", "")]:
            if key == "_self_":
                _merge_into(self.whole, at, own)
            elif not key.startswith(_OVERRIDE) and name not in above:
                self.mount_listed(key, str(option or ""), name, at, (*above, name))

    def mount_listed(self, key: str, option: str, name: str, at: tuple[str, ...], above: tuple[str, ...]) -> None:
        path, _, package = key.removeprefix("optional ").partition("@")
        option = self.chosen.get(_OVERRIDE + key, option)
        option = re.sub(r"\$\{(\w+)\}", lambda match: self.chosen.get(match[1], match[0]), option)
        self.chosen[path] = option
        group = "" if path.startswith("/") else name.rpartition("/")[0]
        target = posixpath.normpath("/".join(filter(None, (group, path.strip("/"), option))))
        inner = tuple(package.split(".")) if package not in ("", "_here_", "_global_") else ()
        if not package and option:
            inner = tuple(path.strip("/").split("/"))
        everywhere = package == "_global_" or (not package and "@package _global_" in self.text(target)[:200])
        self.mount(target, () if everywhere else (*at, *inner), above)


def _merge_into(whole: dict[str, Any], at: tuple[str, ...], own: Mapping[str, Any]) -> None:
    for key in at:
        if not isinstance(whole.get(key), dict):
            whole[key] = {}
        whole = whole[key]
    for key, value in own.items():
        if isinstance(value, dict) and isinstance(whole.get(key), dict):
            _merge_into(whole[key], (), value)
        else:
            whole[key] = value
