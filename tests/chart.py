"""The Helm chart, rendered by Helm itself; run as a module, it writes the names of settings into the schema."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainmedic.service.configuration import known_settings

DEPLOY = Path(__file__).parent.parent / "docs" / "deploy"
CHART = DEPLOY / "helm" / "trainmedic"
SCHEMA = CHART / "values.schema.json"
OPEN = ("rate_limit_storage",)
"""Secrets that may also be one of the words that the schema has for them."""


def rendered(values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The objects of a release. Raises `helm_python.errors.HelmError`."""
    texts = _texts(values or {})
    manifests = [path for path in sorted(texts) if not path.endswith("NOTES.txt")]
    return [item for path in manifests for item in yaml.safe_load_all(texts[path]) if item]


def _texts(values: Mapping[str, Any]) -> Mapping[str, str]:
    """The rendered templates by their path."""
    helm = pytest.importorskip("helm_python.chart")
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(dict(values))
        texts: Mapping[str, str] = chart.render(dict(values), name="trainmedic", namespace="trainmedic")
    return texts


def with_names(schema: str) -> str:
    """The schema of the values with the current names of settings: those of secrets, and those that are none."""
    secrets = [name for name, setting in known_settings().items() if setting.is_secret]
    open_names = [name for name in known_settings() if name not in secrets or name in OPEN]
    for place, names in (("items", secrets), ("propertyNames", open_names)):
        pattern = rf'^( *)"{place}": {{"enum": \[[^\]]*\]}}'
        (indentation,) = re.findall(pattern, schema, re.MULTILINE)
        listed = textwrap.fill(", ".join(f'"{name}"' for name in sorted(names)), 116 - len(indentation))
        enum = f'"{place}": {{"enum": [\n{textwrap.indent(listed, "  ")}\n]}}'
        schema = re.sub(pattern, textwrap.indent(enum, indentation), schema, flags=re.MULTILINE)
    return schema


if __name__ == "__main__":
    SCHEMA.write_text(with_names(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")
