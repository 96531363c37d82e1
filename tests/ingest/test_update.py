"""What is derived from a release goes into the committed files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmedic.ingest.releases import add_messages, add_options
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.frameworks.book import book_of
from trainmedic.kb.sources.tree import SourceTree, tree_of

LORA = 'class LoraConfig:\n    r: int = field(default=8, metadata={"help": "Rank of the update."})\n'


def release(version: str, **files: str) -> SourceTree:
    contents = {path.replace("__", "/") + ".py": text.encode() for path, text in files.items()}
    return tree_of("peft", version, "wheel", contents)


def test_a_release_is_added_to_the_catalogue_with_its_texts(tmp_path: Path) -> None:
    add_options("peft", release("1.0.0", peft__tuners__lora__config=LORA), knowledge=tmp_path)
    older = LORA.replace("Rank of", "Size of") + "    gone: int = 1\n"
    path = add_options("peft", release("0.9.0", peft__tuners__lora__config=older), knowledge=tmp_path)
    book = book_of(path.read_text(encoding="utf-8"))
    assert (book.examined, book.lives["gone"]) == (["0.9.0", "1.0.0"], ["0.9.0", "0.9.0"])
    told = json.loads((path.parent / "help.json").read_text(encoding="utf-8"))
    assert (told["release"], told["options"]["r"]) == ("1.0.0", {"": "Rank of the update."})


def test_a_newer_release_is_added_to_the_messages(tmp_path: Path) -> None:
    stays, goes, comes = (
        f'raise ValueError(f"The adapter {{name}} {word} here.")' for word in ("stays", "goes", "comes")
    )
    add_messages(release("1.0.0", peft__a=f"{stays}\n{goes}"), tmp_path)
    path = add_messages(release("1.1.0", peft__b=f"{stays}\n{comes}"), tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["releases"] == ["1.0.0", "1.1.0"]
    assert {row[0].split()[3]: (row[4], row[5], content["files"][row[6][0]]) for row in content["messages"]} == {
        "stays": (0, 1, "src/peft/b.py"),
        "goes": (0, 0, "src/peft/a.py"),
        "comes": (1, 1, "src/peft/b.py"),
    }
    with pytest.raises(InvalidRequest, match="read up to"):
        add_messages(release("1.0.5"), tmp_path)
