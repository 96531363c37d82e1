"""The Helm chart, rendered by Helm itself; run as a module, it writes the plain manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parent.parent / "docs" / "deploy"
CHART = DEPLOY / "helm" / "trainmedic"
PLAIN = DEPLOY / "kubernetes" / "trainmedic.yaml"
HEAD = """# The chart with its default values, for those who do without Helm: python -m tests.chart
# The Secret is not part of it; docs/deployment.md says how to make it.
"""


def rendered(values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The objects of a release. Raises `helm_python.errors.HelmError`."""
    texts = _texts(values or {})
    manifests = [path for path in sorted(texts) if not path.endswith("NOTES.txt")]
    return [item for path in manifests for item in yaml.safe_load_all(texts[path]) if item]


def notes(values: Mapping[str, Any]) -> str:
    """What Helm prints after an installation."""
    return next(text for path, text in _texts(values).items() if path.endswith("NOTES.txt"))


def _texts(values: Mapping[str, Any]) -> Mapping[str, str]:
    """The rendered templates by their path."""
    helm = pytest.importorskip("helm_python.chart")
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(dict(values))
        texts: Mapping[str, str] = chart.render(dict(values), name="trainmedic", namespace="trainmedic")
    return texts


def plain(objects: Iterable[dict[str, Any]]) -> str:
    """The objects as one file, without what only Helm reads."""
    parts = []
    for item in objects:
        for metadata in (item["metadata"], item.get("spec", {}).get("template", {}).get("metadata", {})):
            for name in ("app.kubernetes.io/managed-by", "helm.sh/chart"):
                metadata.get("labels", {}).pop(name, None)
            metadata.pop("annotations", None)
        parts.append(yaml.safe_dump(item, sort_keys=False, width=120))
    return HEAD + "---\n".join(parts)


if __name__ == "__main__":
    PLAIN.write_text(plain(rendered()), encoding="utf-8")
