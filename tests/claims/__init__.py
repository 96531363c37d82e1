"""What pages say of torch, transformers and PEFT, run on the CPU. Each claim bears the id of its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Claim = Callable[..., None]
_KNOWLEDGE = Path(__file__).parents[2] / "kb"
PAGES = frozenset(page.stem for kind in ("causes", "mechanisms") for page in (_KNOWLEDGE / kind).rglob("*.md"))


class Claims:
    """The claims of one file, in its order."""

    def __init__(self) -> None:
        self.cases: list[Any] = []

    def of(self, page: str) -> Callable[[Claim], Claim]:
        def add(claim: Claim) -> Claim:
            self.cases.append(pytest.param(page, claim, id=f"{page}: {claim.__name__}"))
            return claim

        return add
