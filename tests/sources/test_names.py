"""Where a name is in a release."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.sources.names import Names, names_text
from trainmedic.kb.sources.tree import tree_of

CODE = b'''\
"""The trainer of somebody_else."""
use(batch_size)  # not hidden_thing


class Config:
    beta: float = 0.1
    mode = "dr_grpo" if "a b_c d" else 'x'

    def batch_size(self): ...
'''
NAMES = Names(names_text(tree_of("trl", "1.0", "wheel", {"trl/__init__.py": b"", "trl/config.py": CODE})))


@every_case(
    ("name", "line"),
    [
        ("beta", 6),
        ("--batch-size", 9),  # where it is defined rather than used
        ("args.beta", 6),
        ("Config.batch_size", 9),
        ("dr_grpo", 7),
        ("trl.config", 1),
        ("config.py", 1),
        ("Other.batch_size", None),
        ("hidden_thing", None),
        ("somebody_else", None),
        ("b_c", None),
        ("bet", None),
        ("rl.config", None),
    ],
)
def test_a_name_has_the_place_of_its_definition_or_none(name: str, line: int | None) -> None:
    assert NAMES.place(name) == (("trl/config.py", line) if line is not None else None)
