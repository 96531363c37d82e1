"""The line that raised, in the release that did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.raised import MOST_AROUND, Raised, enclosing, guards, raised_in
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.syntax import module_of
from trainmedic.kb.sources.tree import tree_of

CODE = '''\
class GRPOTrainer:
    def __init__(self, args):
        """Long.

        ...
        """
        self.args = args
        if args.num_generations < 2:
            for _ in range(1):
                raise ValueError(args.num_generations)
        self.ready = True

    def train(self):
        torch.thing(self.args)
'''
LOG = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 9, in <module>
    trainer = GRPOTrainer(args)
  File "/opt/env/lib/python3.11/site-packages/trl/trainer/grpo_trainer.py", line {line}, in {function}
    {code}
ValueError: 1
"""
RAISE = {"line": 10, "function": "__init__", "code": "raise ValueError(args.num_generations)"}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    sources = Sources(tmp_path, "off")
    contents = {"trl/__init__.py": b"", "trl/trainer/grpo_trainer.py": CODE.encode()}
    sources.store.add(tree_of("trl", "0.16.0", "wheel", contents))
    return Library(sources)


def raised(library: Library, log: str, packages: str = "") -> tuple[Raised, ...]:
    files = [Attachment(name="train.log", content=log)]
    if packages:
        files.append(Attachment(name="requirements.txt", content=packages))
    return raised_in(parse("", tuple(files)), library)


@every_case("packages", ["trl==0.16.0\n", ""])
def test_the_line_is_found_with_its_condition(library: Library, packages: str) -> None:
    (found,) = raised(library, LOG.format(**RAISE), packages)
    assert (found.code.version, found.code.path, found.line) == ("0.16.0", "trl/trainer/grpo_trainer.py", 10)
    assert (found.code.symbol, found.condition) == ("GRPOTrainer.__init__", "args.num_generations < 2")
    assert found.innermost
    assert "raise ValueError" in found.code.text
    assert found.code.text.count("\n") < MOST_AROUND


@every_case(
    ("change", "packages"),
    [
        ({"line": 7}, ""),  # another text than the traceback shows
        ({"code": "raise ValueError(args.other)"}, "trl==0.16.0\n"),
        ({"function": "train"}, "trl==0.16.0\n"),  # another function
        ({"line": 999}, "trl==0.16.0\n"),
        ({}, "trl==0.15.0\n"),  # not at hand
    ],
)
def test_code_of_another_release_is_not_shown(library: Library, change: dict[str, object], packages: str) -> None:
    assert raised(library, LOG.format(**{**RAISE, **change}), packages) == ()


def test_a_traceback_without_code_is_that_of_the_release_that_was_pasted(library: Library) -> None:
    log = LOG.format(**RAISE).replace("    raise ValueError(args.num_generations)\n", "")
    assert [each.line for each in raised(library, log, "trl==0.16.0\n")] == [10]
    assert raised(library, log) == ()


def test_what_called_code_that_is_not_at_hand_is_said_so(library: Library) -> None:
    log = LOG.format(line=14, function="train", code="torch.thing(self.args)")
    inner = '  File "/opt/env/lib/python3.11/site-packages/torch/x.py", line 3, in thing\n    boom()\nValueError: 1'
    (found,) = raised(library, log.replace("ValueError: 1", inner), "trl==0.16.0\n")
    assert (found.line, found.innermost, found.condition) == (14, False, "")


@every_case(
    ("body", "condition"),
    [
        ("if a:\n    RAISE", "a"),
        ("if a:\n    pass\nelse:\n    RAISE", "not a"),
        ("if a:\n    return\nRAISE", "not a"),
        ("if a:\n    return\nif b:\n    return\nRAISE", "not b"),
        ("try:\n    x\nexcept E:\n    if a == 1:\n        RAISE", "a == 1"),
        ("with x:\n    for y in z:\n        if not a:\n            RAISE", "not a"),
        ("RAISE", ""),
    ],
)
def test_the_condition_of_a_line_is_what_leads_to_it(body: str, condition: str) -> None:
    text = "def f():\n" + "\n".join(f"    {line}" for line in body.replace("RAISE", "raise E").split("\n"))
    line = next(number for number, each in enumerate(text.split("\n"), start=1) if "raise" in each)
    name, function = enclosing(module_of(text), line)
    assert name == "f"
    assert function is not None
    assert guards(function.body, line)[0] == condition
