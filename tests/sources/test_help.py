"""What a framework's source says of its options."""

from __future__ import annotations

from trainmedic.kb.sources.help import help_texts, short
from trainmedic.kb.sources.tree import SourceTree, tree_of

PYTHON = '''
class GRPOConfig:
    r"""
    Parameters:
        beta (`float`, *optional*, defaults to `0.0`):
            KL coefficient. Links like [`~trl.GRPOTrainer`] and [a page](https://x.y) lose
            their address. Defaults to 0.

    > other (text):
    """
    epsilon: float = field(default=0.2, metadata={"help": "Clipping value."})
    nothing_of_the_catalogue: int = field(default=1, metadata={"help": "Left out."})

class DPOConfig:
    beta: float = field(default=0.1, metadata={"help": "Deviation from the reference."})

parser.add_argument("--loss-type", help="Type of loss.")
'''
YAML = "# Whether to use KL loss.\nuse_kl_loss: false\n\nnested:\n  # unknown\n  no_such: 1\n"


def tree(files: dict[str, str]) -> SourceTree:
    return tree_of("x", "1.0", "wheel", {path: text.encode() for path, text in files.items()})


def test_docstrings_fields_and_flags_are_read_for_the_options_of_the_catalogue() -> None:
    texts = help_texts(
        tree({"trl/config.py": PYTHON, "trl/broken.py": "def", "trl/examples/a.py": PYTHON}),
        ("beta", "epsilon", "loss_type"),
        ("GRPOConfig", "DPOConfig"),
    )
    assert texts == {
        "beta": {
            "DPOConfig": "Deviation from the reference.",
            "GRPOConfig": "KL coefficient. Links like `trl.GRPOTrainer` and a page lose their address.",
        },
        "epsilon": {"": "Clipping value."},
        "loss_type": {"": "Type of loss."},
    }


def test_the_comment_above_a_key_is_that_of_the_section_of_its_folder() -> None:
    texts = help_texts(
        tree({"verl/trainer/config/actor/actor.yaml": YAML}), ("actor_rollout_ref.actor.use_kl_loss",), ()
    )
    assert texts["actor_rollout_ref.actor.use_kl_loss"] == {"": "Whether to use KL loss."}
    assert not any("no_such" in name for name in texts)


def test_a_text_is_cut_after_a_sentence() -> None:
    assert short("One sentence here. " * 40) == " ".join(["One sentence here."] * 13)
    assert short("x" * 600) == ""
