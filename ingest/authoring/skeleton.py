"""The text of a new page. It loads, and lint complains only about the empty parts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from importlib.resources import files


def _template(name: str) -> str:
    return files(__package__).joinpath("skeletons", f"{name}.md").read_text(encoding="utf-8")


EXAMPLE_RULE: Mapping[str, str] = {
    "signals": "loss_nan",
    "frameworks": "trl",
    "when": 'micro_batch == 1 and version("trl", "<0.12.0")',
    "setting": "micro_batch",
    "good": "2",
    "cases": "",
    "url": "https://github.com/OWNER/REPO/issues/NUMBER",
    "says": "maintainer",
}
"""What a rule page is filled with."""


def skeleton(kind: str, page_id: str, version: str, today: date, folder: str = "numerics") -> str:
    """``kind`` is case, mechanism or rule, ``folder`` the name of the page's folder, which is a mechanism's family."""
    values = {**EXAMPLE_RULE, "id": page_id, "version": version, "today": today.isoformat(), "folder": folder}
    return _template(kind).format_map({**values, "examples": _template("rule-examples")})
