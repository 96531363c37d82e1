"""What a class accepts across packages, and what changed between two releases."""

from __future__ import annotations

import pytest

from trainmedic.kb.errors import NotFound
from trainmedic.kb.sources.changes import NewDefault, Rename, function_changes, message_changes, option_changes
from trainmedic.kb.sources.classes import options_of, programs
from trainmedic.kb.sources.tree import SourceTree, tree_of


def tree(package: str, version: str, **files: str) -> SourceTree:
    contents = {f"{path.replace('__', '/')}.py": text.encode() for path, text in files.items()}
    return tree_of(package, version, "wheel", contents)


TRANSFORMERS = tree(
    "transformers",
    "5.0.0",
    transformers__training_args=(
        "from .trainer_utils import Strategy\nSTEPS = 500\n"
        "@dataclass\nclass TrainingArguments:\n    output_dir: str\n"
        "    save_strategy: Strategy = field(default=Strategy.STEPS, metadata={'help': 'When to save.'})\n"
        "    logging_steps: int = STEPS\n    _hidden: int = 1\n"
    ),
    transformers__trainer_utils="class Strategy(ExplicitEnum):\n    NO = 'no'\n    STEPS = 'steps'\n",
)
OWN = "class TrainingArguments(HfArguments):\n    packing: bool = False\n"
TRL = tree(
    "trl",
    "1.0.0",
    trl__trainer__base_config=f"from transformers import TrainingArguments as HfArguments\n@dataclass\n{OWN}",
    trl__trainer__grpo_config=(
        "from .base_config import TrainingArguments\n"
        "@dataclass\nclass GRPOConfig(TrainingArguments):\n    logging_steps: int = 10\n    beta: float = 0.0\n"
    ),
    trl__cli=(
        "types = (ScriptArguments, GRPOConfig)\nparser = HfArgumentParser(types)\n"
        "@hydra.main(config_path='config', config_name='ppo_trainer')\ndef main(cfg): ...\n"
    ),
)


def test_a_class_has_the_fields_of_its_bases_in_other_packages() -> None:
    found = options_of("GRPOConfig", TRL, TRANSFORMERS)
    assert {name: (option.owner, option.package, option.entry["default"]) for name, option in found.items()} == {
        "output_dir": ("TrainingArguments", "transformers", "<required>"),
        "save_strategy": ("TrainingArguments", "transformers", "steps"),
        "logging_steps": ("GRPOConfig", "trl", 10),
        "packing": ("TrainingArguments", "trl", False),
        "beta": ("GRPOConfig", "trl", 0.0),
    }
    strategy = found["save_strategy"]
    assert (strategy.entry["choices"], strategy.help, strategy.path, strategy.line) == (
        ["no", "steps"],
        "When to save.",
        "transformers/training_args.py",
        6,
    )


def test_without_the_other_package_a_class_has_its_own_fields() -> None:
    assert sorted(options_of("GRPOConfig", TRL)) == ["beta", "logging_steps", "packing"]
    with pytest.raises(NotFound):
        options_of("NoSuchConfig", TRL)


def test_the_parsers_of_a_package_name_what_they_read() -> None:
    assert [(found.kind, found.reads) for found in programs(TRL)] == [
        ("HfArgumentParser", ("ScriptArguments", "GRPOConfig")),
        ("hydra", ("ppo_trainer",)),
    ]


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
