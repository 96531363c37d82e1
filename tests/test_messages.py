"""One catalogue format for all user-visible text."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.kb.messages import Messages, load_messages

ROOT = Path(__file__).parent.parent
CATALOGUES = sorted(
    path.relative_to(ROOT).as_posix() for top in ("kb", "service", "ui") for path in (ROOT / top).rglob("messages.toml")
)


@pytest.fixture
def messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Messages]:
    package = tmp_path / "speaking"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "messages.toml").write_text(
        '[plain]\nen = "Literal {braces}"\nzh = "原样 {braces}"\n'
        '[summary.errors]\nen = { one = "{count} error", other = "{count} errors" }\nzh = "{count} 个错误"\n',
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield load_messages("speaking")
    load_messages.cache_clear()


@every_case(("count", "text"), [(0, "0 errors"), (1, "1 error"), (2, "2 errors")])
def test_english_has_a_singular(messages: Messages, count: int, text: str) -> None:
    assert messages("summary.errors", "en", count=count) == text
    assert messages("summary.errors", "zh", count=count) == f"{count} 个错误"


def test_a_text_without_values_is_used_as_it_is(messages: Messages) -> None:
    assert messages("plain", "en") == "Literal {braces}"
    assert messages("plain", "de") == "Literal {braces}"
    assert sorted(messages) == ["plain", "summary.errors"]
    assert len(messages) == 2


def test_an_unknown_name_is_an_error(messages: Messages) -> None:
    with pytest.raises(KeyError):
        messages("absent", "en")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('top = "text"', "belongs under"),
        ('[a]\nen = "x"', "needs exactly"),
        ('[a]\nen = {one = "x"}\nzh = "y"', "plural forms"),
        ('[a]\nen = {few = "x", other = "x"}\nzh = "y"', "plural forms"),
    ],
)
def test_a_malformed_catalogue_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, problem: str
) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "messages.toml").write_text(content, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path.parent)
    with pytest.raises(ValueError, match=problem):
        load_messages(tmp_path.name)


@every_case("catalogue", CATALOGUES)
def test_both_languages_have_the_same_placeholders(catalogue: str) -> None:
    package = "trainmedic." + catalogue.removesuffix("/messages.toml").replace("/", ".")
    for name, forms in load_messages(package).items():
        placeholders = {
            language: {field for _, field, _, _ in string.Formatter().parse(text) if field is not None}
            for language, text in forms.items()
            if language != "en.one"
        }
        assert placeholders["en"] == placeholders["zh"], name
