"""What changed in the code between two set-ups, where it matters for the one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmedic import audit, diff
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.compared import compared, on_the_path
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import tree_of
from trainmedic.ui.present.source_text import MOST_LINES, source_blocks

CODE = """\
class GRPOTrainer:
    def prepare(self, args):
        return self.split(args)

    def split(self, args):
        {check}
        raise RuntimeError({value})

    def score(self, args):
        return args.scale_rewards * {value}

    def other(self):
        return {value}
"""
CHECK = (
    "if args.num_generations < 2:\n"
    '            raise ValueError("GRPO requires at least 2 generations per prompt to work.")'
)
LOG = """\
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/trl/trainer/grpo_trainer.py", line 3, in prepare
    return self.split(args)
  File "/env/lib/python3.11/site-packages/trl/trainer/grpo_trainer.py", line 8, in split
    raise RuntimeError(2)
RuntimeError: 2
"""
RUN = "from trl import GRPOConfig\nargs = GRPOConfig(num_generations=1, scale_rewards=True)\n"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    sources = Sources(tmp_path / "sources", "off")
    texts = {
        "0.16.0": CODE.format(check="pass", value=1),
        "0.17.0": CODE.format(check=CHECK, value=2),
    }
    for version, text in texts.items():
        contents = {"trl/__init__.py": b"", "trl/trainer/grpo_trainer.py": text.encode()}
        sources.store.add(tree_of("trl", version, "wheel", contents))
    return Library(sources)


def evidence(packages: str, *files: tuple[str, str]) -> Evidence:
    named = (("requirements.txt", packages), *files)
    return parse("", tuple(Attachment(name=name, content=content) for name, content in named))


GOOD = evidence("trl==0.16.0\nnumpy==1.0\n").versions


def test_the_path_of_the_traceback_comes_first_then_checks_then_readers_of_options(library: Library) -> None:
    bad = evidence("trl==0.17.0\nnumpy==2.0\n", ("train.log", LOG), ("train.py", RUN))
    (found,) = compared(GOOD, bad, library)
    assert (found.package, found.good, found.bad, found.read) == ("trl", "0.16.0", "0.17.0", True)
    assert [(each.kind, each.name, each.because) for each in found.changes] == [
        ("code", "GRPOTrainer.split", ("traceback",)),
        ("check", "GRPOTrainer.split", ("num_generations",)),
        ("code", "GRPOTrainer.score", ("scale_rewards",)),
    ]
    first, check, _ = found.changes
    assert first.text.startswith("@@ -5,3 +5,4 @@\n")
    assert first.text.endswith("+        raise RuntimeError(2)")
    assert check.text.startswith("ValueError if args.num_generations < 2: GRPO requires")
    assert (check.path, check.line) == ("trl/trainer/grpo_trainer.py", 7)


@pytest.mark.usefixtures("library")
def test_the_python_api_shows_the_changed_code_as_the_commands_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAINMEDIC_SOURCES", "off")
    bad = ("trl==0.17.0\n", LOG, RUN)
    audited = audit(*bad, good=["trl==0.16.0\n"]).compare
    assert audited is not None
    for source in (audited.source, diff(["trl==0.16.0\n"], bad).source):
        assert [each.name for each in source[0].changes][:1] == ["GRPOTrainer.split"]


def test_without_configuration_and_traceback_no_code_is_said_to_matter(library: Library) -> None:
    (found,) = compared(GOOD, evidence("trl==0.17.0\n"), library)
    assert (found.read, found.changes) == (True, ())


def test_releases_that_are_not_at_hand_are_said_in_one_line(library: Library) -> None:
    found = compared(GOOD, evidence("trl==0.18.0\n"), library)
    assert [each.read for each in found] == [False]
    (line,) = source_blocks(found, "en")
    assert "trainmedic kb sources fetch" in line
    assert line.endswith("trl==0.16.0 trl==0.18.0")


def test_a_terminal_shows_some_lines_and_counts_the_rest(library: Library) -> None:
    bad = evidence("trl==0.17.0\n", ("train.log", LOG), ("train.py", RUN))
    blocks = list(source_blocks(compared(GOOD, bad, library) * 9, "en"))
    assert sum(block.count("\n") for block in blocks) <= MOST_LINES
    assert "more changes of code" in blocks[-1]
    assert "on the path of the traceback" in blocks[0]


def test_what_changed_on_the_path_is_told_of_the_release_that_worked(library: Library) -> None:
    bad = evidence("trl==0.17.0\n", ("train.log", LOG))
    assert [each.name for each in on_the_path(GOOD, bad, library)] == ["GRPOTrainer.split"]
