"""The text of a new page. It loads, and lint complains only about the empty parts."""

from __future__ import annotations

from datetime import date
from importlib.resources import files


def skeleton(kind: str, page_id: str, version: str, today: date, folder: str = "numerics") -> str:
    """``kind`` is cause or mechanism, ``folder`` the name of the page's folder, which is a mechanism's family."""
    template = files(__package__).joinpath("skeletons", f"{kind}.md").read_text(encoding="utf-8")
    return template.format(id=page_id, version=version, today=today.isoformat(), folder=folder)
