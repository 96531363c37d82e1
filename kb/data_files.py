"""TOML tables that are shipped beside the code. Reading them here keeps parsing itself free of disk access."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent


@cache
def load_table(name: str) -> Mapping[str, Any]:
    """The table in ``name``, a path below kb/ such as ``parse/data/metrics.toml``."""
    return tomllib.loads((_ROOT / name).read_text(encoding="utf-8"))
