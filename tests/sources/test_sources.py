"""Where the source of a release is found, and that nothing is fetched unless allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.archives import CODE, wheel
from trainmedic.kb.errors import NotFound
from trainmedic.kb.sources.archives import archive_tree
from trainmedic.kb.sources.sources import Sources


@pytest.fixture
def published(tmp_path: Path) -> str:
    """An index that is a folder with two releases."""
    folder = tmp_path / "published" / "tiny"
    folder.mkdir(parents=True)
    wheel(folder)
    wheel(folder, {**CODE, "tiny/config.py": b"class Config:\n    size: int = 512\n"}, version="1.1")
    (folder / "index.html").write_text("".join(f'<a href="{path.name}">{path.name}</a>' for path in folder.iterdir()))
    return folder.parent.as_uri()


def test_a_release_is_fetched_once_and_then_read_from_the_store(tmp_path: Path, published: str) -> None:
    fetched = Sources(tmp_path / "store", "index", index_url=published).open("Tiny", "1.1.0")
    stored = Sources(tmp_path / "store", "off").open("tiny", "1.1")
    assert stored == fetched
    assert stored.text("tiny/config.py") == "class Config:\n    size: int = 512\n"
    assert (stored.package, stored.version, stored.origin) == ("tiny", "1.1", "wheel")


@pytest.mark.parametrize("mode", ["installed", "off"])
def test_nothing_is_fetched_unless_it_is_allowed(tmp_path: Path, published: str, mode: str) -> None:
    sources = Sources(tmp_path / "store", mode, index_url=published)  # type: ignore[arg-type]
    with pytest.raises(NotFound) as caught:
        sources.open("tiny", "1.1")
    assert caught.value.hint is not None
    assert "trainmedic kb sources fetch tiny==1.1" in caught.value.hint


def test_a_missing_file_is_said_with_the_nearest_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        archive_tree(wheel(tmp_path)).text("tiny/confg.py")
    assert caught.value.hint == "did you mean tiny/config.py?"
