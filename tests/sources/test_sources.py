"""Where the source of a release is found, and that nothing is fetched unless allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.utils import canonicalize_version

from tests.every_case import every_case
from tests.sources.archives import CODE, wheel
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.sources.archives import archive_tree
from trainmedic.kb.sources.index import index_of_pip
from trainmedic.kb.sources.selection import release_key
from trainmedic.kb.sources.sources import Sources


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that is a folder with two releases, as pip is configured for it."""
    folder = tmp_path / "published" / "tiny"
    folder.mkdir(parents=True)
    wheel(folder)
    wheel(folder, {**CODE, "tiny/config.py": b"class Config:\n    size: int = 512\n"}, version="1.1")
    (folder / "index.html").write_text("".join(f'<a href="{path.name}">{path.name}</a>' for path in folder.iterdir()))
    monkeypatch.setenv("PIP_INDEX_URL", folder.parent.as_uri())


@pytest.mark.usefixtures("published")
def test_a_release_is_fetched_once_and_then_read_from_the_store(tmp_path: Path) -> None:
    fetched = Sources(tmp_path / "store", "index", index=index_of_pip).open("Tiny", "1.1.0")
    stored = Sources(tmp_path / "store", "off").open("tiny", "1.1")
    assert stored == fetched
    assert stored.text("tiny/config.py") == "class Config:\n    size: int = 512\n"
    assert (stored.package, stored.version, stored.origin) == ("tiny", "1.1", "wheel")


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize("mode", ["installed", "off"])
def test_nothing_is_fetched_unless_it_is_allowed(tmp_path: Path, mode: str) -> None:
    sources = Sources(tmp_path / "store", mode, index=index_of_pip)  # type: ignore[arg-type]
    with pytest.raises(NotFound) as caught:
        sources.open("tiny", "1.1")
    assert caught.value.hint is not None
    assert "trainmedic kb sources fetch tiny==1.1" in caught.value.hint


@every_case("text", ["1", "1.0", "1.0.0", "0.0", "2!1.0.0", "1.10", "1.0rc1", "1.2.0.post1", "2.0.dev3", "2.5.0+cu121"])
def test_a_release_has_one_spelling(text: str) -> None:
    assert release_key(text) == canonicalize_version(text)


@every_case("text", ["", "../x", "a/b", "-a", "a" * 200, "é"])
def test_what_names_no_package_or_version_is_refused(tmp_path: Path, text: str) -> None:
    sources = Sources(tmp_path)
    for package, version in ((text, "1.0"), ("tiny", text or "x")):
        with pytest.raises(InvalidRequest):
            sources.open(package, version)


def test_a_missing_file_is_said_with_the_nearest_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        archive_tree(wheel(tmp_path)).text("tiny/confg.py")
    assert caught.value.hint == "did you mean tiny/config.py?"
