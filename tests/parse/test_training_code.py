"""Faults of training loops that people write themselves. The pages of kb/causes/code have examples of each."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from tests.shipped import shipped_rules
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.code.flaws import CHECKS
from trainmedic.kb.parse.pipeline import parse

STEP = """
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def flaws(code: str) -> dict[str, list[int]]:
    """The faults of a file, each with the lines of its places."""
    evidence = parse("", [Attachment(name="train.py", content=dedent(code))])
    return {flaw.name: [span.line for span in flaw.spans] for flaw in evidence.flaws}


def test_each_check_has_one_page_that_asks_for_it() -> None:
    asked = [name for rule in shipped_rules().rules for name in re.findall(r'code\("(\w+)"\)', rule.when)]
    assert sorted(asked) == sorted(CHECKS)


def test_a_function_of_the_same_file_is_followed() -> None:
    code = """
        import torch

        def update(loss, optimizer):
            loss.backward()
            optimizer.step()
            {clear}

        optimizer = torch.optim.AdamW(model.parameters())
        for batch in loader:
            update(model(**batch).loss, optimizer)
    """
    assert flaws(code.format(clear="optimizer.zero_grad()")) == {}
    assert flaws(code.format(clear="pass")) == {"gradients_never_cleared": [5, 6]}


def test_the_methods_of_a_class_are_one_program() -> None:
    assert (
        flaws(
            """
        class Learner:
            def fit(self):
                for batch in self.loader:
                    self.step(batch)

            def step(self, batch):
                loss = self.model(batch)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()

            def evaluate(self):
                self.model.eval()
        """
        )
        == {}
    )


@pytest.mark.parametrize("left_out", ["# ...", "...", "# 省略"])
def test_what_an_excerpt_leaves_out_is_not_said_to_be_missing(left_out: str) -> None:
    code = f"""
import torch
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    {left_out}
"""
    assert flaws(code) == {}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("if world_size > 1:\n    dist.barrier()\n", "all ranks agree on the test"),
        ("if local_rank != -1:\n    dist.barrier()\n", "it asks whether there are ranks at all"),
        ("if rank == 0:\n    dist.broadcast(x, 0, group=pair)\n", "the group may hold these ranks only"),
        ("if rank == 0:\n    dist.send(x, 1)\nelse:\n    dist.recv(x, 0)\n", "point to point"),
        ("if accelerator.is_main_process:\n    print('saved')\naccelerator.wait_for_everyone()\n", "after the test"),
    ],
)
def test_a_collective_that_every_rank_reaches_is_healthy(code: str, why: str) -> None:
    assert flaws(code) == {}, why


def test_ranks_that_return_early_miss_what_follows() -> None:
    code = """
        def save(model, rank):
            if rank != 0:
                return
            torch.save(model.state_dict(), "out.pt")
            dist.barrier()
    """
    assert flaws(code) == {"collective_on_some_ranks": [3, 6]}


def test_branches_that_exclude_each_other_are_not_one_run() -> None:
    assert (
        flaws(
            """
        if lora:
            model = get_peft_model(model, config)
        else:
            model.requires_grad_(False)
        """
        )
        == {}
    )


def test_a_continued_loop_steps_under_the_opposite_test() -> None:
    code = """
        for i, batch in enumerate(loader):
            {first}
            (model(**batch).loss / accum).backward()
            if (i + 1) % accum:
                continue
            optimizer.step()
            {last}
    """
    assert flaws(code.format(first="pass", last="optimizer.zero_grad()")) == {}


def test_positions_are_those_of_the_file_with_wide_characters() -> None:
    made = "x = '一二三'; optimizer = AdamW(model.parameters())"
    code = f"# 训练循环\n{made}\nmodel = get_peft_model(model, c)\nfor batch in y:{STEP}"
    evidence = parse("", [Attachment(name="train.py", content=code)])
    first = next(flaw for flaw in evidence.flaws if flaw.name == "optimizer_before_adapter").spans[0]
    assert (first.line, first.column, first.text) == (2, 12, "optimizer = AdamW(model.parameters())")


def test_code_that_is_not_python_has_no_faults() -> None:
    assert flaws("for batch in loader\n  loss.backward(\n optimizer.step()") == {}
