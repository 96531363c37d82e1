"""What changed between two releases."""

from __future__ import annotations

import pytest

from trainmedic.kb.sources.changes import NewDefault, Rename, function_changes, message_changes, option_changes
from trainmedic.kb.sources.tree import SourceTree, tree_of


def tree(package: str, version: str, **files: str) -> SourceTree:
    contents = {f"{path.replace('__', '/')}.py": text.encode() for path, text in files.items()}
    return tree_of(package, version, "wheel", contents)


def config(fields: str) -> str:
    return f"@dataclass\nclass SFTConfig:\n{fields}"


def release(fields: str, **others: str) -> SourceTree:
    return tree("trl", "1.0.0", trl__trainer__sft_config=config(fields), **others)


HELP = "metadata={'help': 'Longest sequence in tokens.'}"


def test_options_and_defaults_that_changed_are_listed() -> None:
    before = release("    packing: bool = False\n    seed: int = 1\n    gone: int = 1\n")
    after = release("    packing: bool = True\n    seed: int = True\n    new: int = 1\n")
    found = option_changes("trl", before, after)
    assert (found.added, found.removed, found.renamed) == (("new",), ("gone",), ())
    assert found.defaults == (
        NewDefault(option="packing", owner="", before=False, after=True),
        NewDefault(option="seed", owner="", before=1, after=True),
    )


@pytest.mark.parametrize(
    ("before", "after", "evidence"),
    [
        ("    max_seq_length: int = 1\n", "    max_length: int = field(default=1, alias='max_seq_length')\n", "alias"),
        ("    max_seq_length: int = 1\n", "    max_length: int = 1\n", "message"),
        (
            f"    max_seq_length: int = field(default=1, {HELP})\n",
            f"    limit: int = field(default=1, {HELP})\n",
            "help",
        ),
    ],
)
def test_a_rename_says_what_shows_it(before: str, after: str, evidence: str) -> None:
    warning = 'warnings.warn("`max_seq_length` is deprecated, use max_length instead.")'
    says = {"trl__trainer__sft_trainer": warning} if evidence == "message" else {}
    found = option_changes("trl", release(before, **says), release(after))
    if evidence == "alias":  # the old name is still taken
        assert found.removed == ()
        return
    ((rename),) = found.renamed
    assert isinstance(rename, Rename)
    assert (rename.old, rename.evidence) == ("max_seq_length", evidence)
    assert rename.new == found.added[0]


STEP = """
class Trainer:
    def step(self, batch):
        "{doc}"
        if batch is None:
            raise ValueError("{text}")  # {doc}
        return {value}
"""


def test_messages_and_functions_that_changed_are_listed() -> None:
    first = STEP.format(doc="One.", text="The batch of this step is empty.", value=1)
    again = STEP.format(doc="Other words.", text="The batch of this step is empty.", value=1)
    later = STEP.format(doc="One.", text="There is no batch for this step.", value=2)
    before, same, after = (release("    a: int = 1\n", trl__trainer__trainer=text) for text in (first, again, later))
    assert function_changes(before, same) == ()
    (function,) = function_changes(before, after)
    assert (function.name, function.before) == ("Trainer.step", "(self, batch)")
    found = message_changes(before, after)
    assert [each.message.template for each in found.new] == ["There is no batch for this step."]
    assert [(each.path, each.message.condition) for each in found.gone] == [("trl/trainer/trainer.py", "batch is None")]
