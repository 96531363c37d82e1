"""Which of vLLM's parsers a model needs, by its family: the table is families.toml."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("families.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    name: str = ""
    """A pattern for the model's name in lower case, with hyphens for underscores."""
    types: tuple[str, ...] = ()
    tools: str = ""
    reasoning: str = ""
    since: str = ""


UNKNOWN = Family()


@cache
def families() -> tuple[Family, ...]:
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["families"]
    return tuple(Family(**row | {"types": tuple(row.get("types", ()))}) for row in rows)


def family(model: str) -> Family:
    """Of a name on the hub or a folder of weights, whose own name says more than its configuration does."""
    name, kind = Path(model).name.casefold().replace("_", "-"), _model_type(Path(model) / "config.json")
    named = (row for row in families() if re.search(row.name, name))
    typed = (row for row in families() if kind in row.types)
    return next(named, None) or next(typed, UNKNOWN)


def _model_type(path: Path) -> str:
    with suppress(OSError, ValueError):
        config = json.loads(path.read_text(encoding="utf-8"))
        return str(config.get("model_type", "")) if isinstance(config, dict) else ""
    return ""
