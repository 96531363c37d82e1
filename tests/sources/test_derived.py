"""What is not catalogued is read from the source of the release that a run names, where that is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trainmedic.kb.confined import Confined
from trainmedic.kb.error_messages import index
from trainmedic.kb.error_messages.explain import explain
from trainmedic.kb.frameworks import catalogue, tables
from trainmedic.kb.frameworks.card import card
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.derived import Derived
from trainmedic.kb.sources.reader import ReaderOfReleases
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import tree_of

UNREAD = "99.1.0"
NEWEST = catalogue.versions("peft")[-1]
LORA = """
@dataclass
class LoraConfig:
    r: int = field(default=77, metadata={"help": "Rank of this very release."})
    brand_new: int = 5
""" + "".join(f"    {name}: int = 1\n" for name in catalogue.keys("peft", NEWEST) if name != "r")
RAISING = """
def attach(rank, most):
    if rank > most:
        if not quiet:
            raise ValueError(f"A rank of {rank} does not fit the adapters of this test.")
"""
FILES = {"peft/tuners/lora/config.py": LORA, "peft/tuners/lora/model.py": RAISING, "peft/testing/deep.py": RAISING}


@pytest.fixture
def derived(tmp_path: Path) -> Iterator[Derived]:
    sources = Sources(tmp_path, "off")
    sources.store.add(tree_of("peft", UNREAD, "wheel", {path: text.encode() for path, text in FILES.items()}))
    found = Derived(sources)
    found.attach()
    yield found
    tables.read_with(None)
    index.read_with(None)


def test_no_default_is_stated_of_a_release_that_nobody_read() -> None:
    parse(f"peft=={UNREAD}")
    found = catalogue.option("peft", "lora_alpha", UNREAD)
    assert found is not None
    assert (found.default, found.default_known, found.choices) == (None, False, ())
    assert catalogue.exists("peft", "brand_new", UNREAD) is None


def test_a_release_that_a_run_names_is_read_and_then_known_like_any_other(derived: Derived) -> None:
    before = catalogue.versions("peft")
    parse(f"peft=={UNREAD}")
    assert catalogue.versions("peft") == (*before, UNREAD)
    for version, default in ((UNREAD, 77), (before[-1], 8), (None, 77)):
        found = catalogue.option("peft", "r", version)
        assert found is not None
        assert (found.default, found.default_known) == (default, True)
    assert catalogue.exists("peft", "brand_new", UNREAD) is True
    assert catalogue.exists("peft", "brand_new", before[-1]) is False


def test_a_release_that_was_read_says_what_its_options_mean(derived: Derived) -> None:
    versions = parse(f"peft=={UNREAD}").versions
    found = card("peft", "r", versions=versions)
    assert found is not None
    assert found.help == "Rank of this very release."
    assert found.now is not None
    assert found.now.value == 77


def test_a_release_whose_declarations_are_mostly_elsewhere_is_not_taken_for_read(derived: Derived) -> None:
    files = {"peft/tuners/lora/config.py": b"class LoraConfig:\n    r: int = 1\n"}
    derived.sources.store.add(tree_of("peft", "99.2.0", "wheel", files))
    catalogue.read_releases({"peft": VersionFact(package="peft", exact="99.2.0", reason="said")})
    assert "99.2.0" not in catalogue.versions("peft")


def test_what_was_derived_is_kept_beside_the_packs(derived: Derived, tmp_path: Path) -> None:
    parse(f"peft=={UNREAD}")
    (kept,) = tmp_path.glob("peft/options-*.json")
    kept.write_text(kept.read_text(encoding="utf-8").replace("77", "78"), encoding="utf-8")
    derived.attach()
    tables.read_with(derived.catalogue)
    parse(f"peft=={UNREAD}")
    found = catalogue.option("peft", "r", UNREAD)
    assert found is not None
    assert found.default == 78


@pytest.mark.parametrize("file", ["tuners/lora/model.py", "testing/deep.py"])
def test_a_message_is_explained_at_the_release_that_printed_it(derived: Derived, file: str) -> None:
    (match,) = explain(
        parse(
            f"peft=={UNREAD}\nTraceback (most recent call last):\n"
            f'  File "/opt/venv/lib/python3.11/site-packages/peft/{file}", line 5, in attach\n'
            "    raise ValueError(\nValueError: A rank of 9 does not fit the adapters of this test.\n"
        )
    )
    assert (match.entry.first, match.place.line, match.place.condition) == (UNREAD, 5, "rank > most and (not quiet)")
    assert match.place.file == f"src/peft/{file}"
    assert match.values == {"rank": "9"}
    assert match.in_version


@pytest.mark.parametrize(("package", "path"), [("flash-attn", "hopper/deep.py"), ("deepspeed", "op_builder/deep.py")])
def test_a_package_is_known_by_each_of_its_modules(derived: Derived, package: str, path: str) -> None:
    derived.sources.store.add(tree_of(package, UNREAD, "wheel", {path: RAISING.encode()}))
    (match,) = explain(
        parse(
            f"{package}=={UNREAD}\nTraceback (most recent call last):\n"
            f'  File "/opt/venv/lib/python3.11/site-packages/{path}", line 5, in attach\n'
            "    raise ValueError(\nValueError: A rank of 9 does not fit the adapters of this test.\n"
        )
    )
    assert (match.entry.package, match.entry.first, match.place.line) == (package, UNREAD, 5)


@pytest.mark.parametrize(
    ("line", "raised", "condition"),
    [(4, "ValueError: 17", "rank > most"), (5, "AssertionError", "rank")],
)
def test_what_raises_a_text_of_values_alone_is_told_by_its_line(
    derived: Derived, line: int, raised: str, condition: str
) -> None:
    body = "def attach(rank, most):\n    if rank > most:\n        fail = 1\n        raise ValueError(rank)\n"
    body += "    assert not rank\n"
    derived.sources.store.add(tree_of("peft", "99.3.0", "wheel", {"peft/a.py": body.encode()}))
    (match,) = explain(
        parse(
            "peft==99.3.0\nTraceback (most recent call last):\n"
            f'  File "/opt/site-packages/peft/a.py", line {line}, in attach\n    x\n{raised}\n'
        )
    )
    assert (match.place.line, match.place.condition, match.entry.first) == (line, condition, "99.3.0")


def test_a_confined_process_reads_the_releases_as_well(derived: Derived) -> None:
    reader = ReaderOfReleases(derived.sources.store.folder, "off")
    with ThreadPoolExecutor(1) as caller:
        pool = Confined(60.0, 2 * 1024**3, 1)
        try:
            evidence = caller.submit(pool.run, reader.read, f"peft=={UNREAD}\nr: 8", ()).result()
        finally:
            pool.close()
    assert evidence.versions["peft"].exact == UNREAD
    assert list(derived.sources.store.folder.glob("peft/options-*.json"))
