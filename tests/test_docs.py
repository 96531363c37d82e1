"""What the documents say is so: settings, verbs and calls, in both directions."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.ui.cli import verbs
from trainmedic.ui.settings_page import page

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_table_of_settings_is_generated_from_the_settings() -> None:
    assert page(SETTINGS) == SETTINGS, "run python -m trainmedic.ui.settings_page"


@pytest.mark.parametrize("verb", verbs())
def test_every_command_is_documented(verb: str) -> None:
    assert re.search(rf"`trainmedic {verb}\b", COMMANDS)


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_linked_file_is_there(text: str) -> None:
    links = re.findall(r"\]\(([\w./-]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_call_is_described(advisor: Advisor) -> None:
    app = create_app(advisor, Settings())
    for path in app.openapi()["paths"]:
        assert path in API, path


def test_the_two_commands_of_the_readme_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("serve", "test"):
        assert f"make {target}" in README
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_make_targets_name_tests_that_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"addprefix tests/service/test_,\$\(addsuffix \.py,([\w ]+)\)", makefile)
    assert names
    assert [name for name in names[0].split() if not (ROOT / f"tests/service/test_{name}.py").is_file()] == []


def test_every_threat_names_a_test_that_there_is() -> None:
    model = (ROOT / "docs" / "threat_model.md").read_text(encoding="utf-8")
    rows = [line for line in model.splitlines() if line.startswith("|") and "::" in line]
    named = [re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row) for row in rows]
    assert len(rows) > 40
    assert [row for row, tests in zip(rows, named, strict=True) if not tests] == []
    gone = [
        f"{path}::{name}"
        for path, name in chain.from_iterable(named)
        if not re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert gone == []
