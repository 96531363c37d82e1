"""Tables and texts that are shipped beside the code, and the folder of what is not. Reading them here keeps parsing
itself free of disk access."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent
_NEXT = "\f"


@cache
def load_table(name: str) -> Mapping[str, Any]:
    """The table in ``name``, a path below kb/ such as ``parse/data/metrics.toml``."""
    return read_toml(_ROOT / name)


def read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


class Texts(Mapping[str, str]):
    """The texts by name in a file that `write_texts` wrote; those of a block are unpacked when one is asked for."""

    def __init__(self, path: Path) -> None:
        head, _, self._packed = path.read_bytes().partition(b"\n")
        self._places: dict[str, tuple[int, int, int]] = json.loads(head)
        self._blocks: dict[int, list[str]] = {}

    def __getitem__(self, name: str) -> str:
        import lzma

        begin, end, number = self._places[name]
        if begin not in self._blocks:
            self._blocks[begin] = lzma.decompress(self._packed[begin:end]).decode().split(_NEXT)
        return self._blocks[begin][number]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def load_texts(name: str) -> Texts:
    """The texts in ``name``, a path below kb/."""
    return Texts(_ROOT / name)


def write_texts(path: Path, texts: Mapping[str, str], block: int = 1 << 32) -> None:
    """Compress texts without form feeds, sorted by name and together: those of neighbours share most of their words.

    A block has at most ``block`` characters, or one text; the first line of the file says where each text is.
    """
    import lzma

    blocks: list[list[str]] = [[]]
    for name in sorted(texts):
        if blocks[-1] and sum(len(texts[each]) for each in (*blocks[-1], name)) > block:
            blocks.append([])
        blocks[-1].append(name)
    places, packed = dict[str, tuple[int, int, int]](), b""
    for names in blocks:
        data = lzma.compress(_NEXT.join(texts[name] for name in names).encode(), preset=9 | lzma.PRESET_EXTREME)
        places |= {name: (len(packed), len(packed) + len(data), number) for number, name in enumerate(names)}
        packed += data
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.dumps(places, separators=(",", ":")).encode() + b"\n" + packed)


def default_data_dir() -> Path:
    """The user's data folder, never the working directory."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "trainmedic"


def load_yaml(package: str, name: str) -> Mapping[str, Any]:
    """The mapping in a YAML file of a package."""
    import yaml

    path = Path(import_module(package).__path__[0]) / name
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data: Mapping[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    return data
