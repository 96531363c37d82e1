"""Tables that are shipped beside the code, and the folder of what is not. Reading tables here keeps parsing itself free
of disk access."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent


@cache
def load_table(name: str) -> Mapping[str, Any]:
    """The table in ``name``, a path below kb/ such as ``parse/data/metrics.toml``."""
    return read_toml(_ROOT / name)


def read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


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
