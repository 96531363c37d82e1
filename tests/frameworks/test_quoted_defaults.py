"""What pages say of defaults is so in every release read, or names the releases for which it holds."""

from __future__ import annotations

import json
from pathlib import Path

from tests.every_case import every_case
from trainmedic.ingest.update.quoted import faults, history, quotes, quotes_of
from trainmedic.kb.frameworks.tables import Table


def test_every_quoted_default_holds_in_every_release_read_or_names_the_releases() -> None:
    assert list(faults(quotes())) == []


def test_many_quotes_are_compared() -> None:
    assert sum(bool(history(quote, {})) for quote in quotes()) >= 50


def catalogue(**defaults: int) -> Table:
    """A catalogue with one option of GRPOConfig, by its default at each release (``v1_0`` is 1.0)."""
    releases = [name[1:].replace("_", ".") for name in defaults]
    head = {"framework": "trl", "versions": releases, "examined": releases, "owners": [["GRPOConfig"]]}
    runs = [[place, place, {"in": 0, "default": value}] for place, value in enumerate(defaults.values())]
    lines = ({**head, "names": ["max_completion_length"]}, [[releases[0], None], runs])
    return Table("\n".join(map(json.dumps, lines)))


@every_case(
    ("said", "defaults", "wrong"),
    [
        ("`max_completion_length` (default 256)", {"v1_0": 256, "v1_1": 256}, False),
        ("`max_completion_length` (default 256)", {"v1_0": 256, "v1_1": 512}, True),
        ("`max_completion_length` (default 256 up to 1.0)", {"v1_0": 256, "v1_1": 512}, False),
        ("`max_completion_length` (default 300 up to 1.0)", {"v1_0": 256, "v1_1": 512}, True),
        ("`max_completion_length`, 512 by default", {"v1_0": 256, "v1_1": 512}, True),
        ("`max_completion_length`（默认 256）", {"v1_0": 256, "v1_1": 512}, True),
        ("the default `max_completion_length` is 512", {"v1_0": 256, "v1_1": 512}, True),
    ],
)
def test_a_quote_is_wrong_from_the_first_release_read_that_differs(
    tmp_path: Path, said: str, defaults: dict[str, int], wrong: bool
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"---\nframeworks: [trl]\nalgorithms: [grpo]\n---\nGRPO stops at {said}.\n", encoding="utf-8")
    assert bool(list(faults(quotes_of(page), {"trl": catalogue(**defaults)}))) is wrong
