"""Texts read as a native engineer would write them: patterns of translated English, and two words for one thing."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.every_case import every_case

ROOT = Path(__file__).parent.parent
ENGLISH = {
    r"\b(nobody|somebody|anybody)\b": "no one, someone, or say who",
    r"(?<![Tt]here )\b(is|are|was|were) no (?!(longer|more|less|other|such|faster|one)\b)[a-z]+": "is not a …",
    r"\banew\b": "again",
    r"\bbut for\b": "except",
    r"\bat last\b": "finally",
    r"\b(an|a|the) own\b": "your own, its own",
    r"\b(a|an|one) [a-z]+ of (its|their|your) own\b": "its own …",
    r"\bbroken off\b": "ends before",
    r"\bfor ever\b": "forever",
    r"\b(by|in|of) somewhat\b": "a little",
    r"\bone for another\b": "interchangeable",
    r"\bstands? (in|behind|before|beside) (the|a|an|it|each)\b": "is in, follows, precedes",
    r"\bspeaks? (for|against)\b": "is evidence for",
    r"(?<![-\w])(row length|length of (the|a) rows?|micro-batch(es)?)\b(?!-)": "sequence length, micro batch",
    r"\b(inference engine|roll-out|reward modelling model)\b": "rollout engine, rollout",
}
CHINESE = {
    "微批": "micro batch",
    "(?<!梯度)检查点": "checkpoint",
    "采样引擎": "推理引擎",
    "行长": "序列长度",
}
IN_DOCSTRINGS = tuple(ENGLISH)[:5]
DOCUMENTS = ("README.md", "SECURITY.md", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")))
CATALOGUES = tuple(
    sorted(
        path.relative_to(ROOT).as_posix()
        for top in ("kb", "service", "ui")
        for name in ("messages.toml", "about.toml")
        for path in (ROOT / top).rglob(name)
    )
)


def offences(text: str, patterns: dict[str, str]) -> list[str]:
    return [
        f"{text[max(0, match.start() - 40) : match.end() + 20]!r}: {better}"
        for bad, better in patterns.items()
        for match in re.finditer(bad, text)
    ]


def texts(table: dict[str, Any], language: str) -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from (value.values() if key == language else texts(value, language))
        elif key == language:
            yield value


def prose(markdown: str) -> str:
    """The text without code, links and comments."""
    markdown = re.sub(r"```.*?```|<!--.*?-->", "", markdown, flags=re.S)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", markdown)


def described(source: str) -> list[str]:
    """Docstrings and comments, without the code in them."""
    docstrings = re.findall(r'^[ ]*"""(.*?)"""', source, re.M | re.S)
    return [prose(text.replace("``", "`")) for text in (*docstrings, *re.findall(r"(?:^| )# (.*)", source, re.M))]


def unnamed(source: str) -> list[str]:
    """The module and its public classes and functions whose docstrings say "What …" instead of naming the thing."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    vague = [node for node in documented if (ast.get_docstring(node) or "").startswith("What ")]
    names = [getattr(node, "name", "the module") for node in vague]
    return [name for name in names if not name.startswith("_")]


@every_case("page", DOCUMENTS)
def test_documents_read_as_written_in_english(page: str) -> None:
    assert not offences(prose((ROOT / page).read_text(encoding="utf-8")), ENGLISH)


@every_case("catalogue", CATALOGUES)
def test_messages_read_as_written_in_each_language(catalogue: str) -> None:
    table = tomllib.loads((ROOT / catalogue).read_text(encoding="utf-8"))
    assert not [found for text in texts(table, "en") for found in offences(text, ENGLISH)]
    assert not [found for text in texts(table, "zh") for found in offences(text, CHINESE)]


def test_docstrings_read_as_written_in_english() -> None:
    patterns = {bad: ENGLISH[bad] for bad in IN_DOCSTRINGS}
    found = []
    for top in ("kb", "service", "ui", "ingest"):
        for path in sorted((ROOT / top).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            where = path.relative_to(ROOT).as_posix()
            found += [f"{where}: {wrong}" for text in described(source) for wrong in offences(text, patterns)]
            found += [f"{where}: {name} begins with 'What': name the thing" for name in unnamed(source)]
    assert not found


def test_titles_read_as_written_in_each_language() -> None:
    found = []
    for path in sorted((*(ROOT / "kb/causes").rglob("*.md"), *(ROOT / "kb/mechanisms").rglob("*.md"))):
        page = path.read_text(encoding="utf-8")
        title = re.search(r"^title:(.*?)(?=^\w)", page, re.M | re.S)
        if title:
            english, _, chinese = title[1].partition("zh:")
            wrong = [*offences(english, ENGLISH), *offences(chinese, CHINESE)]
            found += [f"{path.relative_to(ROOT)}: {one}" for one in wrong]
    assert not found
