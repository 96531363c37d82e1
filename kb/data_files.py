"""Tables and texts that are shipped beside the code, and the folder of what is not. Reading them here keeps parsing
itself free of disk access."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent
_NEXT = "\f"
_LZMA = {"id": 0x21, "preset": 9 | 1 << 31, "lc": 4, "lp": 0, "pb": 0}
"""LZMA2 with the settings that suit text."""


@cache
def load_table(name: str) -> Mapping[str, Any]:
    """The table in ``name``, a path below kb/ such as ``parse/data/metrics.toml``."""
    return read_toml(_ROOT / name)


def read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def load_texts(name: str) -> Mapping[str, str]:
    """The texts by name in the compressed file ``name``, a path below kb/; none if there is no such file."""
    path = _ROOT / name
    return read_texts(path) if path.exists() else {}


def read_texts(path: Path) -> dict[str, str]:
    """What `write_texts` wrote."""
    import lzma

    names, *texts = lzma.decompress(path.read_bytes()).decode().split(_NEXT)
    return dict(zip(names.split(), texts, strict=True))


def write_texts(path: Path, texts: Mapping[str, str]) -> None:
    """Compress texts without form feeds together: those of neighbours share most of their words."""
    import lzma

    content = _NEXT.join((" ".join(sorted(texts)), *(text for _, text in sorted(texts.items()))))
    path.write_bytes(lzma.compress(content.encode(), filters=[_LZMA]))


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
