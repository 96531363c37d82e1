"""A framework is a folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from trainmedic.kb.data_files import Texts, write_texts
from trainmedic.kb.frameworks import profiles
from trainmedic.kb.frameworks.tables import OPTIONS

ROOT = Path(__file__).parent.parent.parent

PROFILE = """
title = "TuneWell"
aliases = ["tune-well"]
signature = ["tw_recipe"]
batch = "multiplied"
readers = [{ of = "command", how = "argparse", program = '^twell sft$', owners = ["sft"] }]
implies = [{ set = "bf16", value = true, source = "set in TuneWell's code" }]

[commands]
names = ["twell"]
trains = ["sft"]
idle = ["serve"]

[settings]
learning_rate = "tw_lr"
micro_batch = "tw_batch"
gradient_accumulation = "tw_steps"
"""
CATALOGUE = """\
{"framework": "tunewell", "versions": ["1.0"], "examined": ["1.0"], "owners": [["sft"]],\
 "names": ["tw_batch", "tw_lr", "tw_recipe", "tw_steps"]}
[["1.0", null], [[0, 0, {"type": "int", "default": 2, "in": 0}]]]
[["1.0", null], [[0, 0, {"type": "float", "default": 0.0001, "in": 0}]]]
[["1.0", null], [[0, 0, {"type": "str", "default": null, "in": 0}]]]
[["1.0", null], [[0, 0, {"type": "int", "default": 4, "in": 0}]]]"""
PROGRAM = """
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.profiles import title
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.model.place import Attachment

def run(text, question="", name="run.sh"):
    return parse(question, [Attachment(name=name, content=text)] if text else []).run

started = run("twell sft --tw_lr 3e-5 --tw_recipe chat\\n")
settings = started.settings
print(started.framework.value, started.algorithm.value, settings["learning_rate"].value, settings["bf16"].value)
launched = "torchrun --nproc_per_node 4 twell sft --tw_lr 1e-5 --tw_recipe x\\n"
batch = Facts(parse("", [Attachment(name="run.sh", content=launched)]))
print(batch.name("global_batch").value)
print(run("", "my Tune-Well run diverges").framework.value)
print(run("tw_recipe: chat\\ntw_lr: 1e-5\\n", name="run.yaml").framework.value)
print(parse("I use tune_well 1.0.3", []).versions["tunewell"].exact)
print(title("tunewell"), "tunewell" in catalogue.frameworks(), catalogue.suggest("tunewell", "tw_recpie").key)
report = check(parse("", [Attachment(name="run.sh", content="pip install tunewell==1.0\\ntwell sft --tw_recpie x\\n")]),
               load_rules())
print([finding.rule_id for finding in report.fired if "tw_recipe" in finding.message.en])
"""


def linked(source: Path, target: Path) -> None:
    """The same tree with links for files, so that a folder can be added to the copy."""
    target.mkdir(parents=True)
    for child in source.iterdir():
        (target / child.name).symlink_to(child.resolve())


def test_a_new_folder_and_a_catalogue_are_a_new_framework(tmp_path: Path) -> None:
    linked(ROOT / "trainmedic", tmp_path / "trainmedic")
    linked(ROOT / "kb", tmp_path / "trainmedic" / "kb")
    (tmp_path / "trainmedic" / "kb" / "frameworks").unlink()
    linked(ROOT / "kb" / "frameworks", tmp_path / "trainmedic" / "kb" / "frameworks")
    folder = tmp_path / "trainmedic" / "kb" / "frameworks" / "tunewell"
    folder.mkdir()
    (folder / "profile.toml").write_text(PROFILE, encoding="utf-8")
    shipped, known = ROOT / "kb" / OPTIONS, tmp_path / "trainmedic" / "kb" / OPTIONS
    known.parent.unlink()
    linked(shipped.parent, known.parent)
    known.unlink()
    write_texts(known, {**Texts(shipped), "tunewell": CATALOGUE})

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=tmp_path, check=False,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "tunewell sft 3e-05 True",
        "32",
        "tunewell",
        "tunewell",
        "1.0.3",
        "TuneWell True tw_recipe",
        "['option-unknown']",
    ]


def test_an_unknown_key_of_a_profile_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x" / "profile.toml"
    path.parent.mkdir()
    path.write_text("titel = 'X'\n", encoding="utf-8")
    with pytest.raises(ValueError, match="titel"):
        profiles.load(path)


def test_an_empty_profile_takes_everything_from_the_name_of_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "tune-well" / "profile.toml"
    path.parent.mkdir()
    path.write_text("", encoding="utf-8")
    profile = profiles.load(path)
    assert (profile.title, profile.package, profile.modules) == ("tune-well", "tune-well", ("tune_well",))
    assert re.fullmatch(profile.mention, "tune well")
    assert "tune_well" in profile.names
