"""What the documents say is so: settings, verbs and calls, in both directions."""

from __future__ import annotations

import posixpath
import re
import runpy
import tomllib
from itertools import chain
from pathlib import Path

from tests.every_case import every_case
from trainmedic.kb import plugins
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.ui.cli import verbs
from trainmedic.ui.settings_page import page

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "connect" / "api.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "kb").glob("*/README.md"))]
SETTINGS = (ROOT / "docs" / "run" / "settings.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "use" / "cli.md").read_text(encoding="utf-8")


def test_the_table_of_settings_is_generated_from_the_settings() -> None:
    assert page(SETTINGS) == SETTINGS, "run python -m trainmedic.ui.settings_page"


@every_case("verb", sorted({*verbs(), *plugins.registered(plugins.COMMANDS)}))
def test_every_command_is_documented(verb: str) -> None:
    assert re.search(rf"`trainmedic {verb}\b", COMMANDS)


def test_every_extra_is_documented() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = re.findall(r"^\| (`.+?) \|", COMMANDS.partition("| extra |")[2].partition("\n\n")[0], re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(extras)


def prose(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@every_case("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z]+:", link):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(link)
    assert broken == []


def test_the_index_of_the_documents_lists_each_of_them() -> None:
    listed = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = (page.relative_to(ROOT / "docs").as_posix() for page in sorted((ROOT / "docs").glob("*/*.md")))
    assert [page for page in pages if f"({page})" not in listed] == []


def test_the_site_has_every_document_and_its_generated_pages_link_to_one_another() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = (page.relative_to(ROOT / "docs").as_posix() for page in sorted((ROOT / "docs").glob("*/*.md")))
    assert [page for page in pages if page not in listed] == []
    made = dict(runpy.run_path(str(ROOT / "docs" / "site.py"))["knowledge"]("zh"))
    assert {"causes", "checks", "mechanisms", "defects"} < made.keys()
    broken = []
    for name, text in made.items():
        for target, anchor in re.findall(r"\]\((?!https?:|#)([^)#\s]+)\.md(?:#([^)\s]+))?\)", text):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if place not in made or (anchor and f'id="{anchor}"' not in made[place]):
                broken.append(f"{name} → {target}#{anchor}")
    assert broken == []
    assert len(made) > 600


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
    model = (ROOT / "docs" / "run" / "reliability.md").read_text(encoding="utf-8")
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
