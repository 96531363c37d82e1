"""The last lines of tracebacks and logs from public threads, as they came.

``package`` is whose message a line is (null: of none that is indexed), ``says`` a part of it. ``missed`` is why one is
not found: its ``release`` is older than those that were read, the user has ``shortened`` it, it is ``information`` and
no problem, the ``source`` with it was not read, or a ``twin`` in another package says the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.every_case import every_case
from trainmedic.kb.error_messages.explain import explain
from trainmedic.kb.error_messages.template import split
from trainmedic.kb.parse.pipeline import parse

LINES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "tracebacks.jsonl").read_text(encoding="utf-8").splitlines()
]


def plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def is_found(item: dict[str, Any]) -> bool:
    """Whether the likeliest message is the right one, in a release that fits the stated version."""
    entries = [entry for match in explain(parse(item["line"]))[:1] for entry in (match.entry, *match.others)]
    return any(
        entry.package == item["package"]
        and plain(item["says"]) in plain(" ".join(split(entry.template)[0]))
        and (item["version"] is None or entry.includes(item["version"]) is not False)
        for entry in entries
    )


@every_case("item", [item for item in LINES if item["package"] is None])
def test_what_no_indexed_package_says_is_not_explained(item: dict[str, Any]) -> None:
    assert explain(parse(item["line"])) == ()


@every_case("item", [item for item in LINES if item["package"] and "missed" not in item])
def test_a_pasted_message_is_found_in_its_package_and_release(item: dict[str, Any]) -> None:
    assert is_found(item)


def test_of_the_messages_of_indexed_packages_seven_in_eight_are_found() -> None:
    ours = [item for item in LINES if item["package"]]
    assert sum(map(is_found, ours)) >= len(ours) * 7 / 8
