"""Pages that were read are kept like compiled modules, and are the same as those that are read anew."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.every_case import every_case
from tests.rules.test_prefilter import PASTES, read
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.prefilter import SHAPES, empty
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.pages.case import CAUSES
from trainmedic.kb.pages.compiled import CACHE, CompiledPages
from trainmedic.kb.pages.rule import load_rules


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "code" / "causes").mkdir(parents=True)
    (tmp_path / "code" / "reader.py").write_text("")
    (tmp_path / "pages" / "family").mkdir(parents=True)
    (tmp_path / "pages" / "family" / "one.md").write_text("one")
    return tmp_path / "pages"


def compiled(pages: Path) -> CompiledPages:
    return CompiledPages(pages, "pages", pages.parent / "code", ("causes",))


def file_of(pages: Path) -> Path:
    return next((pages / CACHE).iterdir())


def test_what_was_kept_is_loaded_until_a_page_or_its_reader_changes(pages: Path) -> None:
    assert compiled(pages).load() is None
    compiled(pages).keep({"one": 1})
    assert compiled(pages).load() == {"one": 1}
    (pages.parent / "code" / "causes" / "other.md").write_text("no reader")
    assert compiled(pages).load() == {"one": 1}


@every_case(
    "change",
    [
        lambda pages: (pages / "family" / "one.md").write_text("another"),
        lambda pages: os.utime(pages / "family" / "one.md", ns=(1, 1)),
        lambda pages: (pages / "two.md").write_text("two"),
        lambda pages: (pages / "family" / "one.md").rename(pages / "one.md"),
        lambda pages: (pages.parent / "code" / "reader.py").write_text("pass"),
        lambda pages: file_of(pages).write_bytes(file_of(pages).read_bytes()[:-3]),
        lambda pages: file_of(pages).write_bytes(b""),
    ],
)
def test_what_does_not_fit_is_not_loaded(pages: Path, change: Callable[[Path], object]) -> None:
    compiled(pages).keep({"one": 1})
    change(pages)
    assert compiled(pages).load() is None


def test_a_page_that_changes_while_it_is_read_is_read_again(pages: Path) -> None:
    reading = compiled(pages)
    assert reading.load() is None
    (pages / "family" / "one.md").write_text("another")
    reading.keep({"one": 1})
    assert compiled(pages).load() is None


def test_pages_that_are_nowhere_are_not_kept(pages: Path) -> None:
    nowhere = compiled(pages / "nowhere")
    assert nowhere.load() is None
    nowhere.keep({})
    assert not (pages / "nowhere").exists()


def test_nothing_is_kept_where_python_keeps_no_modules(pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compiled(pages).keep({"one": 1})
    assert not (pages / CACHE).exists()


def test_a_disk_that_is_full_harms_nothing(pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    compiled(pages).keep({"one": 1})
    assert compiled(pages).load() is None


def test_rules_that_were_kept_find_what_rules_that_are_read_find(tmp_path: Path) -> None:
    (tmp_path / "causes").symlink_to(CAUSES)
    made = load_rules(builtin=tmp_path)
    kept = pickle.loads(pickle.dumps(made))
    assert (kept.version, kept.ids) == (made.version, made.ids)
    for name in PASTES:
        evidence = read(name).evidence
        assert check(evidence, kept) == check(evidence, made)


@every_case("text", ["micro_batch == 1 and fp16", 'log_says("out of memory") or fp16', "not bf16"])
def test_a_condition_that_was_kept_has_the_same_values(text: str) -> None:
    made = compile_expression(text, vocabulary())
    kept = pickle.loads(pickle.dumps(made))
    assert kept == made
    for shape in SHAPES:
        assert kept.where_silent(empty(shape)) is made.where_silent(empty(shape))
    for name in PASTES:
        facts = read(name)
        assert kept.holds(facts) is made.holds(facts)
        assert kept.explain(facts) == made.explain(facts)


def test_a_condition_over_what_the_evidence_does_not_mention_is_not_compiled_again() -> None:
    kept = pickle.loads(pickle.dumps(compile_expression("micro_batch == 1", vocabulary())))
    assert kept.holds(empty(SHAPES[0])) is not None
    assert "root" not in vars(kept)
