"""New releases of a package are read, go into the committed files, and are reported with what they make untrue."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.sources.archives import wheel
from trainmedic.ingest.update.committed import (
    add_messages,
    add_renames,
    add_side,
    begun,
    pins_of,
    with_options,
    write_options,
)
from trainmedic.ingest.update.difference import drafts
from trainmedic.ingest.update.quoted import named
from trainmedic.ingest.update.report import markdown
from trainmedic.ingest.update.update import Update
from trainmedic.kb.data_files import Texts, write_texts
from trainmedic.kb.error_messages.index import REST, SAID, shipped_tables
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.book import Entry, book_of
from trainmedic.kb.frameworks.tables import HELP, OPTIONS, Table
from trainmedic.kb.sources.changes import NewDefault, OptionChanges, Rename, function_changes
from trainmedic.kb.sources.tree import Release, SourceTree, tree_of
from trainmedic.ui.cli import USAGE, main

NEWEST = catalogue.versions("peft")[-1]
ONE: Mapping[str, Entry] = {"r": {"type": "int", "default": 8, "in": ["A", "B"]}}


def release(version: str, **files: str) -> SourceTree:
    contents = {path.replace("__", "/") + ".py": text.encode() for path, text in files.items()}
    return tree_of("peft", version, "wheel", contents)


def book(**options: Entry) -> str:
    return begun("peft", "1.0", options)


def test_a_catalogue_keeps_what_is_not_read_of_a_release_and_takes_what_changed() -> None:
    stored = book(
        r={"type": "int", "default": 8, "in": ["B", "A"]},
        gone={"default": 1, "in": ["A"]},
        by_hand={"default": "auto", "in": ["A"]},
    )
    old = {**ONE, "gone": {"default": 1, "in": ["A"]}, "unseen": {"default": 0, "in": ["A"]}}
    new = {**ONE, "unseen": {"default": 0, "in": ["A"]}, "fresh": {"default": 2, "in": ["A"]}}
    newer = [("1.1", new), ("1.2", {**new, "r": {**ONE["r"], "default": 16}})]
    found = book_of(Table(with_options(stored, ("1.0", old), newer)))
    assert {name: life for name, life in found.lives.items()} == {
        "r": ["1.0", None],
        "gone": ["1.0", "1.0"],
        "by_hand": ["1.0", None],
        "fresh": ["1.1", None],
    }
    assert found.releases["1.1"]["r"]["in"] == ["B", "A"]
    assert [found.releases[version]["r"]["default"] for version in ("1.0", "1.1", "1.2")] == [8, 8, 16]


def test_what_a_release_says_of_its_options_replaces_what_was_committed(tmp_path: Path) -> None:
    write_texts(tmp_path / OPTIONS, {})
    write_texts(tmp_path / HELP, {"peft": "{}"})
    said = 'class LoraConfig:\n    r: int = field(default=8, metadata={"help": "Rank of the update."})\n'
    text = book(r={"type": "int", "default": 8, "in": ["LoraConfig"]})
    write_options("peft", text, release("1.0", peft__config=said), knowledge=tmp_path)
    told = json.loads(Texts(tmp_path / HELP)["peft"])
    assert told == {"release": "1.0", "options": {"r": {"": "Rank of the update."}}}


def test_a_newer_release_is_added_to_the_messages(tmp_path: Path) -> None:
    stays, goes, comes = (
        f'raise ValueError(f"The adapter {{name}} {word} here.")' for word in ("stays", "goes", "comes")
    )
    for name in (SAID, REST):
        write_texts(tmp_path / name, {})
    add_messages(release("1.0.0", peft__a=f"{stays}\n{goes}"), knowledge=tmp_path)
    add_messages(release("1.1.0", peft__b=f"{stays}\n{comes}"), knowledge=tmp_path)
    (written,) = shipped_tables(Texts(tmp_path / SAID), Texts(tmp_path / REST))
    assert {(each.template.split()[3], each.first, each.last, each.places[0].file) for each in written} == {
        ("stays", "1.0.0", "1.1.0", "src/peft/b.py"),
        ("goes", "1.0.0", "1.0.0", "src/peft/a.py"),
        ("comes", "1.1.0", "1.1.0", "src/peft/b.py"),
    }
    with pytest.raises(InvalidRequest, match="read up to"):
        add_messages(release("1.0.5"), knowledge=tmp_path)


def test_days_and_renames_go_into_the_side_tables(tmp_path: Path) -> None:
    folder = tmp_path / "frameworks" / "data"
    folder.mkdir(parents=True)
    (folder / "_dates.json").write_text('{"peft": {"1.10": "2026-02-01"}}')
    (folder / "_renames.json").write_text("{}")
    add_side("dates", "peft", {"1.9": "2026-01-01"}, knowledge=tmp_path)
    assert (folder / "_dates.json").read_text() == '{\n "peft": {"1.9": "2026-01-01", "1.10": "2026-02-01"}\n}\n'
    told = [Rename(old="a", new="b", evidence="alias", text=""), Rename(old="c", new="d", evidence="help", text="x")]
    changes = OptionChanges(added=(), removed=(), renamed=tuple(told), defaults=())
    add_renames("peft", "1.9", "1.10", changes, knowledge=tmp_path)
    assert json.loads((folder / "_renames.json").read_text()) == {
        "peft": [{"from_last": "1.9", "to_first": "1.10", "map": {"*": {"a": "b"}}}]
    }


def test_requirements_are_what_is_always_or_first_asked_for_and_what_is_excluded() -> None:
    required = [
        'vllm>=0.17,<=0.25; extra == "vllm"',
        'vllm>=0.30; extra == "newest"',
        "transformers>=4.56",
        'transformers!=5.1.0; extra == "deepspeed"',
        'deepspeed>=9; extra == "dev"',
        "torch",
        "something else entirely (",
    ]
    assert pins_of(required, {"vllm", "transformers", "deepspeed", "torch"}) == {
        "transformers": ">=4.56,!=5.1.0",
        "vllm": ">=0.17,<=0.25",
    }


def test_without_a_history_a_small_change_of_a_function_is_a_draft_bound_by_the_releases_at_hand() -> None:
    texts = ("scale = 1", "scale = 2", "scale = 2", "scale = 3")
    trees = [
        release(f"1.{number}", peft__a=f"def loss(x):\n    {text}\n    return x * scale\n")
        for number, text in enumerate(texts)
    ]
    changed = function_changes(trees[-2], trees[-1])
    (found,) = drafts(changed, trees)
    assert (found.introduced, found.fixed, found.how) == ("1.1", "1.3", "difference")
    assert "-    scale = 2\n+    scale = 3" in found.diff
    assert next(drafts(changed, trees[1:])).introduced == ""


def test_a_page_names_an_option_where_it_reads_it_or_writes_it_as_code() -> None:
    assert any(place.startswith("causes/") for place in named(["beta"], "trl"))
    assert not list(named(["beta"], "megatron-core"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index with two releases of PEFT: the newest that is catalogued, and a later one."""
    folder = tmp_path / "simple" / "peft"
    folder.mkdir(parents=True)
    for version, rank, more in ((NEWEST, 8, ""), ("99.1", 77, "    brand_new: int = 5\n")):
        text = f"class LoraConfig:\n    r: int = {rank}\n    lora_alpha: int = 8\n{more}"
        wheel(folder, {"peft/__init__.py": b"", "peft/tuners/lora/config.py": text.encode()}, version, "peft")
    (folder / "index.html").write_text("".join(f'<a href="{path.name}">x</a>' for path in folder.glob("*.whl")))
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_INDEX_URL", folder.parent.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return tmp_path


def test_the_command_reports_what_changed_and_what_is_not_true_any_more(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "update", "peft", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["before"]["version"], [each["version"] for each in found["after"]]) == (NEWEST, ["99.1"])
    assert found["options"]["peft"]["added"] == ["brand_new"]
    assert [(each["option"], each["after"]) for each in found["options"]["peft"]["defaults"]] == [("r", 77)]
    assert main(["kb", "update", "peft"]) == 0
    assert "- `r`: `8` → `77`" in capsys.readouterr().out


def test_a_default_that_is_a_table_is_reported_as_it_is_written() -> None:
    change = NewDefault(option="fsdp_config", owner="TrainingArguments", before=None, after={"min_num_params": 0})
    changes = OptionChanges(added=(), removed=(), renamed=(), defaults=(change,))
    newer = Release(version="5.0")
    report = markdown([Update(package="transformers", after=(newer,), options={"transformers": changes})])
    assert '- `fsdp_config` of TrainingArguments: `null` → `{"min_num_params": 0}`' in report


@pytest.mark.parametrize("words", [["nothing-known"], ["peft", "--since", "yesterday"], ["peft", "--checkout", "."]])
def test_what_cannot_be_updated_is_refused(machine: Path, words: list[str]) -> None:
    assert main(["kb", "update", *words]) == USAGE


def test_a_package_that_no_index_has_needs_its_checkout(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "update", "slime"]) == 0
    assert "slime is not on the package index" in capsys.readouterr().out
