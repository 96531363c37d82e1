"""What strangers may look up in the source at hand: bounded, cited, and only of packages that train models."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.sources import library as of_library
from trainmedic.kb.sources.library import MOST_LINES, Library
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import tree_of

CONFIG = "@dataclass\nclass GRPOConfig:\n    beta: float = {beta}\n    num_generations: int = 8\n"
TRAINER = """\
class GRPOTrainer:
    def _prepare(self, args):
        if args.num_generations < 2:
            raise ValueError("GRPO requires at least 2 generations per prompt.")
        return {value}
"""


def release(version: str, beta: str = "0.04", value: str = "1") -> dict[str, bytes]:
    return {
        "trl/__init__.py": b"",
        "trl/trainer/grpo_config.py": CONFIG.format(beta=beta).encode(),
        "trl/trainer/grpo_trainer.py": TRAINER.format(value=value).encode(),
        "trl/long.py": b"x = 1\n" * 500,
    }


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    sources = Sources(tmp_path, "off")
    sources.store.add(tree_of("trl", "0.16.0", "wheel", release("0.16.0")))
    sources.store.add(tree_of("trl", "0.17.0", "wheel", release("0.17.0", beta="0.0", value="2")))
    made = Library(sources)
    yield made
    made.close()


def test_lines_are_found_with_their_place(library: Library) -> None:
    found = library.grep("trl", "0.16", "requires at least", "trl/trainer/")
    assert found.complete
    assert found.text == (
        "trl 0.16.0: 1 line\n"
        'trl/trainer/grpo_trainer.py:4: raise ValueError("GRPO requires at least 2 generations per prompt.")'
    )
    assert [(each.version, each.first) for each in found.passages] == [("0.16.0", 4)]


def test_a_hostile_pattern_is_refused(library: Library) -> None:
    with pytest.raises(InvalidRequest):
        library.grep("trl", "0.16.0", "(a+)+$")


def test_a_pattern_that_one_line_holds_up_is_given_up_while_others_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_library, "KILLED_S", 3.0)
    sources = Sources(tmp_path, "off")
    sources.store.add(tree_of("trl", "0.16.0", "wheel", {"trl/a.py": b"x1 = 1\n" + b"a" * 300}))
    with closing(Library(sources)) as library, ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(library.grep, "trl", "0.16.0", r"\w*\w*\w*\w*x1")
        assert library.grep("trl", "0.16.0", "x1").passages
        assert not stuck.done()
        with pytest.raises(InvalidRequest, match="could not be finished"):
            stuck.result()


@every_case(
    ("path", "name", "lines", "place"),
    [
        ("", "GRPOTrainer._prepare", "", "trl/trainer/grpo_trainer.py:2-5 GRPOTrainer._prepare"),
        ("", "trl.trainer.grpo_config.GRPOConfig", "", "trl/trainer/grpo_config.py:1-4 GRPOConfig"),
        ("trl.trainer.grpo_config", "GRPOConfig.beta", "", "trl/trainer/grpo_config.py:3 GRPOConfig.beta"),
        ("trl/trainer/grpo_trainer.py", "", "3-4", "trl/trainer/grpo_trainer.py:3-4"),
        ("trl/trainer/grpo_trainer.py", "", "4", "trl/trainer/grpo_trainer.py:4"),
    ],
)
def test_source_is_read_by_symbol_or_by_lines(library: Library, path: str, name: str, lines: str, place: str) -> None:
    found = library.read("trl", "0.16.0", path, name, lines)
    head, first = found.text.split("\n")[:2]
    assert head == f"trl 0.16.0 {place}"
    assert first.startswith(f"{found.passages[0].first}: ")


def test_a_long_file_is_cut_and_says_so(library: Library) -> None:
    found = library.read("trl", "0.16.0", "trl/long.py")
    assert (found.complete, found.passages[0].last) == (False, MOST_LINES)
    assert library.read("trl", "0.16.0", "trl/long.py", lines="490-900").passages[0].last == 500


@every_case("lines", ["x", "5-", "9-3", "0", "1" * 20])
def test_lines_that_are_none_are_refused(library: Library, lines: str) -> None:
    with pytest.raises(InvalidRequest):
        library.read("trl", "0.16.0", "trl/long.py", lines=lines)


def test_what_changed_is_listed_with_its_place(library: Library) -> None:
    assert "-        return 1\n+        return 2" in library.diff("trl", "0.16.0", "0.17.0", "", "GRPOTrainer").text
    text = library.changes("trl", "0.16.0", "0.17.0").text
    assert "defaults changed:\n- beta: 0.04 → 0.0" in text
    assert "functions changed:\n- trl/trainer/grpo_trainer.py GRPOTrainer._prepare" in text
    assert "_prepare" not in library.changes("trl", "0.16.0", "0.17.0", "beta").text


def test_what_changed_between_two_releases_is_kept_beside_the_later(library: Library, tmp_path: Path) -> None:
    text = library.changes("trl", "0.16.0", "0.17.0").text
    (kept,) = tmp_path.glob("trl/changes-*.json")
    kept.write_text(kept.read_text(encoding="utf-8").replace("beta: 0.04", "beta: 0.05"), encoding="utf-8")
    again = Library(library.sources)
    assert again.changes("trl", "0.16.0", "0.17.0").text == text.replace("beta: 0.04", "beta: 0.05")
    assert again.changes("trl", "0.17.0", "0.16.0").text != text


def test_a_release_that_is_not_at_hand_is_said_with_what_brings_it(library: Library) -> None:
    with pytest.raises(NotFound) as caught:
        library.read("trl", "0.15.0", "trl/long.py")
    assert "trainmedic kb sources fetch trl==0.15.0" in str(caught.value.hint)


def test_of_what_is_installed_only_training_packages_are_read(tmp_path: Path) -> None:
    library = Library(Sources(tmp_path))
    assert library.at_hand("accelerate")
    assert library.at_hand("pytest") is None
    with pytest.raises(NotFound):
        library.read("pytest", pytest.__version__, "pytest/__init__.py")
