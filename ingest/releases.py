"""Puts what is derived from a release into the committed files of `kb.frameworks` and `kb.error_messages`."""

from __future__ import annotations

import json
from pathlib import Path

from trainmedic.kb.error_messages import packages
from trainmedic.kb.frameworks.book import Book, book_of, text_of
from trainmedic.kb.sources.help import help_texts
from trainmedic.kb.sources.messages import with_release
from trainmedic.kb.sources.options import extract
from trainmedic.kb.sources.tree import SourceTree

KNOWLEDGE = Path(__file__).resolve().parents[1] / "kb"


def add_options(framework: str, tree: SourceTree, *others: SourceTree, knowledge: Path = KNOWLEDGE) -> Path:
    """Catalogue a release, and of the newest what it says of its options. ``others`` are packages that it builds on.

    Raises `NotFound` where it declares no options.
    """
    folder = knowledge / "frameworks" / framework
    path = folder / "options.json"
    book = book_of(path.read_text(encoding="utf-8")) if path.exists() else Book(framework=framework)
    book.add(tree.version, extract(framework, tree, *others))
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(book), encoding="utf-8")
    if book.examined[-1] == tree.version:
        names = {name for options in book.releases.values() for name in options}
        owners = {owner for options in book.releases.values() for entry in options.values() for owner in entry["in"]}
        texts = help_texts(tree, names, owners)
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(texts[name], ensure_ascii=False)}" for name in texts)
        content = f'{{"release": {json.dumps(tree.version)}, "options": {{\n{lines}\n}}}}\n'
        (folder / "help.json").write_text(content, encoding="utf-8")
    return path


def add_messages(tree: SourceTree, knowledge: Path = KNOWLEDGE) -> Path:
    """Add the messages of a release that is newer than all that were read. Raises `InvalidRequest` otherwise."""
    path = knowledge / "error_messages" / "data" / f"{tree.package}.json"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    text = with_release(before, tree, packages.package(tree.package))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
