"""Where a name is in a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import tree_of

CODE = b'''\
"""The trainer of somebody_else."""
use(batch_size, used_there)  # not hidden_thing


class Config:
    beta: float = 0.1
    mode = "dr_grpo" if "a b_c d" else 'x'

    def batch_size(self): ...
'''
OTHER = b"""class Trainer(Base):
    def shared(self): ...
    def own(self): ...
"""


@pytest.fixture
def library(tmp_path: Path) -> Library:
    sources = Sources(tmp_path, "off")
    contents = {
        "trl/__init__.py": b"",
        "trl/config.py": CODE,
        "trl/grpo_trainer.py": OTHER,
        "trl/dpo_trainer.py": OTHER.replace(b"Trainer", b"Other"),
    }
    sources.store.add(tree_of("trl", "1.0", "wheel", contents))
    base = {"transformers/__init__.py": b"class Base:\n    def inherited(self): ...\n    used_there: int = 1\n"}
    sources.store.add(tree_of("transformers", "5.0", "wheel", base))
    return Library(sources)


@every_case(
    ("name", "near", "path", "line"),
    [
        ("beta", "", "trl/config.py", 6),
        ("--batch-size", "", "trl/config.py", 9),  # where it is defined rather than used
        ("args.beta", "", "trl/config.py", 6),
        ("Config.batch_size", "", "trl/config.py", 9),
        ("dr_grpo", "", "trl/config.py", 7),
        ("trl.config", "", "trl/config.py", 1),
        ("config.py", "", "trl/config.py", 1),
        ("used_there", "", "transformers/__init__.py", 3),  # trl only uses it
        ("shared", "", "", 0),  # of several, none is meant
        ("shared", "grpo", "trl/grpo_trainer.py", 2),
        ("Trainer.own", "", "trl/grpo_trainer.py", 3),
        ("Trainer.inherited", "", "trl/grpo_trainer.py", 1),
    ],
)
def test_a_name_has_the_place_of_its_definition(library: Library, name: str, near: str, path: str, line: int) -> None:
    found = library.named(name, {"trl": "1.0", "transformers": "5.0"}, near)
    assert found is not None
    assert (found.path, found.line) == (path, line)


@every_case(
    "name", ["Unheard.batch_size", "Trainer.unheard", "hidden_thing", "somebody_else", "b_c", "bet", "rl.config"]
)
def test_what_no_code_names_is_not_known(library: Library, name: str) -> None:
    assert library.named(name, {"trl": "1.0", "transformers": "5.0", "peft": "9.9"}) is None
