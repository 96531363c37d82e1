"""A release that somebody asks for comes from the index once, within the time and the room that there is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from tests.sources.archives import wheel
from tests.sources.test_derived import FILES, UNREAD
from trainmedic.kb.confined import Confined
from trainmedic.kb.error_messages import index
from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.frameworks import catalogue, tables
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.arrivals import AGAIN_S, Arrivals
from trainmedic.kb.sources.derived import Derived
from trainmedic.kb.sources.index import index_of_pip
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.reader import ReaderOfReleases
from trainmedic.kb.sources.selection import release_key
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.store import IN_USE_S, Store
from trainmedic.kb.sources.tree import SourceTree, tree_of
from trainmedic.service.dialogue.reading import ReadOnce
from trainmedic.ui.releases import learning

CODE = {path: text.encode() for path, text in FILES.items()}


class SlowIndex:
    """Gives a release when it is told to, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.given = Event()

    def __call__(self, package: str, version: str) -> SourceTree:
        self.asked.append(version)
        self.given.wait(30)
        if version == "0":
            raise SourceError("the index cannot be reached")
        return tree_of(package, version, "wheel", {})


def test_all_who_ask_for_a_release_wait_for_one_download() -> None:
    slow = SlowIndex()
    arrivals = Arrivals(slow, 30)
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(arrivals.wait, "trl", "9.0") for _ in range(3)]
        slow.given.set()
        assert {one.result().version for one in found} == {"9.0"}
    assert slow.asked == ["9.0"]


def test_nobody_waits_longer_than_allowed_however_many_releases_are_missing() -> None:
    slow = SlowIndex()
    arrivals = Arrivals(slow, 0.2)
    for version in "12345":
        arrivals.order("trl", version)
    begun = time.monotonic()
    for version in "12345":
        with pytest.raises(SourceError, match="still on its way"):
            arrivals.wait("trl", version)
    assert time.monotonic() - begun < 2
    slow.given.set()


def test_what_failed_is_asked_again_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, now = SlowIndex(), time.monotonic()
    slow.given.set()
    arrivals = Arrivals(slow, 30)
    for later in (0, 1, AGAIN_S + 1):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        with pytest.raises(SourceError, match="cannot be reached"):
            arrivals.wait("trl", "0")
    assert slow.asked == ["0", "0"]


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sources]:
    """Those of a service, before an index with two releases of peft and one of another project named roll."""
    for name, version in (("peft", UNREAD), ("peft", "99.2.0"), ("roll", "99.0")):
        folder = tmp_path / "published" / name
        folder.mkdir(parents=True, exist_ok=True)
        wheel(folder, {**CODE, f"{name}/x.py": os.urandom(4000)}, version, name)
        links = (f'<a href="{path.name}">{path.name}</a>' for path in folder.glob("*.whl"))
        (folder / "index.html").write_text("".join(links))
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "published").as_uri())
    found = Sources(tmp_path / "store", "index", index=index_of_pip, wait_s=30)
    Derived(found).attach()
    yield found
    tables.read_with(None)
    index.read_with(None)


def test_a_release_that_a_question_names_is_fetched_and_the_question_is_read_again(sources: Sources) -> None:
    evidence, read = parse("peft==0.10.0"), list[str]()
    evidence = replace(evidence, versions={"peft": VersionFact(package="peft", exact=UNREAD, reason="said")})

    def elsewhere(question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        read.append(question)
        return evidence

    reading = learning(ReadOnce(elsewhere), sources)
    reading("why?", ())
    reading("why?", ())
    assert read == ["why?", "why?"]
    assert catalogue.exists("peft", "brand_new", UNREAD) is True


def test_a_process_that_reads_finds_what_was_fetched_since_it_last_looked(tmp_path: Path) -> None:
    store = Store(tmp_path)
    reader = ReaderOfReleases(tmp_path, "installed")
    with Confined(60.0) as pool:
        pool.run(reader.read, f"peft=={UNREAD}", ())
        store.add(tree_of("peft", UNREAD, "wheel", CODE))
        pool.run(reader.read, f"peft=={UNREAD}", ())
    assert list(tmp_path.glob("peft/options-*.json"))


def unused(store: Store, package: str, version: str, hours: int) -> None:
    for path in store.folder.glob(f"{package}/{release_key(version)}.list"):
        os.utime(path, (then := time.time() - IN_USE_S - 3600 * hours, then))


def test_past_its_room_the_store_loses_what_was_not_used_for_longest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number, origin in enumerate(("wheel", "sdist", "checkout", "wheel")):
        version = f"1.{number}"
        store.add(tree_of("trl", version, origin, {"trl/same.py": b"1", f"trl/{number}.py": os.urandom(50_000)}))  # type: ignore[arg-type]
        unused(store, "trl", version, 9 - number)
    total = sum(path.stat().st_size for path in tmp_path.glob("*/*"))
    assert store.open("trl", "1.0").version == "1.0"
    assert store.trim(total - 1)
    assert [pack.version for pack in store.releases()] == ["1.0", "1.2", "1.3"]
    assert not store.trim(1)
    assert [pack.version for pack in store.releases()] == ["1.0", "1.2"]
    assert [store.open("trl", "1.0").text(path) for path in ("trl/same.py",)] == ["1"]


def test_a_full_store_refuses_what_a_client_names_and_keeps_what_is_in_use(sources: Sources, tmp_path: Path) -> None:
    small = Sources(tmp_path / "store", "index", index=index_of_pip, room=1000)
    assert small.open("peft", UNREAD).version == UNREAD
    with pytest.raises(SourceError, match="is full"):
        small.open("peft", "99.2.0")
    unused(small.store, "peft", UNREAD, 1)
    again = Sources(tmp_path / "store", "index", index=index_of_pip, room=1000)
    assert again.open("peft", "99.2.0").version == "99.2.0"
    assert not again.store.has("peft", UNREAD)


def test_a_tree_whose_release_had_to_go_is_opened_again(sources: Sources) -> None:
    library = Library(sources)
    library.tree("peft", UNREAD)
    unused(sources.store, "peft", UNREAD, 1)
    sources.store.trim(0)
    assert "class LoraConfig" in library.tree("peft", UNREAD).text("peft/tuners/lora/config.py")
    library.close()


def test_what_is_installed_under_such_a_name_counts_only_from_a_folder_or_repository(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    about = site / "roll-99.0.dist-info"
    about.mkdir(parents=True)
    (site / "roll").mkdir()
    (site / "roll" / "a.py").write_text("x = 1\n")
    (about / "top_level.txt").write_text("roll\n")
    with pytest.raises(NotFound):
        Sources(tmp_path / "store", environments=[tmp_path]).open("roll", "99.0")
    (about / "direct_url.json").write_text('{"url": "file:///src/ROLL", "dir_info": {}}')
    assert Sources(tmp_path / "store", environments=[tmp_path]).open("roll", "99.0").paths() == ("roll/a.py",)


@pytest.mark.parametrize("ask", [Sources.open, Sources.fetch])
def test_another_project_under_the_name_of_one_that_is_not_published_is_not_read(
    sources: Sources, ask: Callable[[Sources, str, str], SourceTree]
) -> None:
    with pytest.raises(NotFound, match="not published"):
        ask(sources, "roll", "99.0")
