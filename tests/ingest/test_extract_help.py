"""What a framework's source says of its options."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from trainmedic.ingest.tools.extract_help import help_texts, short
from trainmedic.ingest.tools.extract_source import WheelTree

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


def wheel(folder: Path, files: dict[str, str]) -> WheelTree:
    path = folder / "x-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return WheelTree(path)


def test_docstrings_fields_and_flags_are_read_for_the_options_of_the_catalogue(tmp_path: Path) -> None:
    texts = help_texts(wheel(tmp_path, {"trl/config.py": PYTHON, "trl/broken.py": "def", "tests/a.py": PYTHON}), "trl")
    assert texts == {
        "beta": {
            "DPOConfig": "Deviation from the reference.",
            "GRPOConfig": "KL coefficient. Links like `trl.GRPOTrainer` and a page lose their address.",
        },
        "epsilon": {"": "Clipping value."},
        "loss_type": {"": "Type of loss."},
    }


def test_the_comment_above_a_key_is_that_of_the_section_of_its_folder(tmp_path: Path) -> None:
    texts = help_texts(wheel(tmp_path, {"verl/trainer/config/actor/actor.yaml": YAML}), "verl")
    assert texts["actor_rollout_ref.actor.use_kl_loss"] == {"": "Whether to use KL loss."}
    assert not any("no_such" in name for name in texts)


def test_a_text_is_cut_after_a_sentence() -> None:
    assert short("One sentence here. " * 40) == " ".join(["One sentence here."] * 13)
    assert short("x" * 600) == ""
