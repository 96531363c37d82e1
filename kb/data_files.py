"""TOML tables that are shipped beside the code. Reading them here keeps parsing itself free of disk access."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent


def load_table(name: str) -> dict[str, Any]:
    """The table in ``name``, a path below kb/ such as ``parse/data/metrics.toml``."""
    return tomllib.loads((_ROOT / name).read_text(encoding="utf-8"))
