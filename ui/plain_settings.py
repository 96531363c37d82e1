"""Settings that a command or a call of the Python API needs, read without the packages of a service."""

from __future__ import annotations

import os
from pathlib import Path

from trainmedic.kb.errors import InvalidSettings


def setting(name: str) -> str:
    """A setting that is not a secret, of the environment or of the file; empty without it."""
    if value := os.environ.get(f"TRAINMEDIC_{name.upper()}"):
        return value
    path = Path(os.environ.get("TRAINMEDIC_CONFIG", "trainmedic.toml"))
    if not path.is_file():
        return ""
    import tomllib

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSettings(f"{path} is not TOML: {error}") from error
    section, _, key = name.partition("_")
    inner = table.get(section)
    value = table.get(name, inner.get(key, "") if isinstance(inner, dict) else "")
    if isinstance(value, dict):
        return ""
    return os.pathsep.join(map(str, value)) if isinstance(value, list) else str(value)
