"""What is installed is found through its metadata, as it is on disk now, and no interpreter is started."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.sources.archives import CODE, wheel
from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.sources.archives import archive_tree
from trainmedic.kb.sources.installed import Installed, distributions, site_packages
from trainmedic.kb.sources.sources import Sources


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site-packages of an environment."""
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    return folder


def install(site: Path, files: Mapping[str, bytes] = CODE, version: str = "1.0", name: str = "tiny") -> Path:
    """As pip does: the files, then RECORD."""
    rows = []
    for path, content in files.items():
        put(site / path, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}")
    about = site / f"{name}-{version}.dist-info"
    put(about / "METADATA", f"Name: {name}\nVersion: {version}\n".encode())
    put(about / "RECORD", "\n".join([*rows, "../../../bin/tiny,,", f"{about.name}/RECORD,,", ""]).encode())
    return about


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def found(site: Path, name: str = "tiny") -> Installed:
    return next(each for each in distributions(site_packages(site.parents[2])) if each.package == name)


def test_an_installed_release_equals_its_wheel(site: Path, tmp_path: Path) -> None:
    install(site)
    tree = found(site).tree()
    assert tree is not None
    assert tree.digest == archive_tree(wheel(tmp_path)).digest
    assert (tree.origin, tree.version, tree.paths()) == ("installed", "1.0", tuple(CODE))


def test_a_change_on_disk_is_what_counts(site: Path, tmp_path: Path) -> None:
    about = install(site)
    changed = site / "tiny" / "config.py"
    changed.write_bytes(changed.read_bytes().replace(b"256", b"999"))
    later = (about / "RECORD").stat().st_mtime + 10
    os.utime(changed, (later, later))
    tree = found(site).tree()
    assert tree is not None
    assert "999" in tree.text("tiny/config.py")
    assert tree.digest != archive_tree(wheel(tmp_path)).digest


def test_a_file_that_changes_after_its_tree_was_opened_is_not_read_as_the_old_one(site: Path) -> None:
    install(site)
    tree = found(site).tree()
    assert tree is not None
    changed = site / "tiny" / "config.py"
    changed.write_bytes(b"other\n")
    later = changed.stat().st_mtime + 10
    os.utime(changed, (later, later))
    with pytest.raises(SourceError, match="changed just now"):
        tree.text("tiny/config.py")


def test_a_wrong_record_does_not_hide_a_file(site: Path) -> None:
    about = install(site)
    record = about / "RECORD"
    right = record.read_text()
    for wrong in ("A" * 43, "A" * 47, "no digest"):
        record.write_text(re.sub(r"(config\.py,sha256=)[^,]*", rf"\g<1>{wrong}", right))
        tree = found(site).tree()
        assert tree is not None
        assert tree.text("tiny/config.py").startswith("class Config")
        assert {len(digest) for digest in tree.files.values()} == {64}


def test_what_is_installed_is_read_before_what_is_stored_if_it_is_that_release(site: Path, tmp_path: Path) -> None:
    install(site, version="1.0+cu121")
    sources = Sources(tmp_path / "store", environments=[site.parents[2] / "bin" / "python"])
    sources.store.add(archive_tree(wheel(tmp_path)))
    sources.store.add(archive_tree(wheel(tmp_path, version="1.1")))
    assert [sources.open("tiny", version).origin for version in ("1.0", "1.1")] == ["installed", "wheel"]
    assert Sources(tmp_path / "store", "off", environments=[site.parents[2]]).open("tiny", "1.0").origin == "wheel"


def test_record_does_not_lead_out_of_the_environment(site: Path, tmp_path: Path) -> None:
    put(tmp_path / "env" / "lib" / "secret.py", b"password = 1\n")
    about = install(site)
    with (about / "RECORD").open("a") as record:
        record.write(f"../../secret.py,,\n{tmp_path}/env/lib/secret.py,,\n")
    tree = found(site).tree()
    assert tree is not None
    assert tree.paths() == tuple(CODE)


def test_without_record_the_top_level_packages_are_read(site: Path) -> None:
    about = install(site)
    (about / "RECORD").unlink()
    put(about / "top_level.txt", b"tiny\n../..\n..\n")
    tree = found(site).tree()
    assert tree is not None
    assert tree.paths() == tuple(CODE)


def test_an_editable_installation_is_followed_through_its_finder(site: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for path, content in CODE.items():
        put(project / "code" / path, content)
    mark = tmp_path / "ran"
    finder = f"open({str(mark)!r}, 'w')\nMAPPING: dict[str, str] = {{'tiny': {str(project / 'code' / 'tiny')!r}}}\n"
    edit(site, project, {"__editable___tiny_1_0_finder.py": finder, "__editable__.tiny-1.0.pth": "import x\n"})
    tree = found(site).tree()
    assert tree is not None
    assert tree.paths() == tuple(CODE)
    assert not mark.exists()


@pytest.mark.parametrize("below", ["", "src"])
def test_an_editable_installation_is_followed_through_its_path(site: Path, tmp_path: Path, below: str) -> None:
    project = tmp_path / "project"
    for path, content in {**CODE, "tests/test_tiny.py": b"", "setup.py": b""}.items():
        put(project / below / path, content)
    edit(site, project, {"_tiny.pth": f"{project / below}\n"})
    tree = found(site).tree()
    assert tree is not None
    assert tree.paths() == tuple(CODE)
    assert tree.text("tiny/config.py").startswith("class Config")


def edit(site: Path, project: Path, files: Mapping[str, str]) -> None:
    about = install(site, {name: text.encode() for name, text in files.items()})
    put(about / "direct_url.json", json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}}).encode())


def test_what_is_gone_or_replaced_is_not_installed(site: Path, tmp_path: Path) -> None:
    edit(site, tmp_path / "gone", {"_tiny.pth": f"{tmp_path}/gone\n", "__editable___tiny_1_0_finder.py": ""})
    assert found(site).tree() is None
    about = install(site, name="other")
    before = found(site, "other")
    about.rename(site / "other-2.0.dist-info")
    assert before.tree() is None


def test_packages_of_the_environment_below_count_only_if_they_are_seen(site: Path, tmp_path: Path) -> None:
    install(site)
    (site / "odd-unknown.dist-info").mkdir()
    venv = tmp_path / "venv"
    put(venv / "pyvenv.cfg", f"home = {tmp_path}/env/bin\ninclude-system-site-packages = true\n".encode())
    (venv / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    assert [each.package for each in distributions(site_packages(venv / "bin" / "python"))] == ["tiny"]
    put(venv / "pyvenv.cfg", f"home = {tmp_path}/env/bin\ninclude-system-site-packages = false\n".encode())
    assert list(distributions(site_packages(venv))) == []


def test_a_pth_file_adds_folders_and_its_code_is_not_run(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    install(other)
    put(site / "more.pth", f"import os; os.remove('/x')\n# comment\n{other}\n/nowhere\n".encode())
    assert found(site).folder.parent == other


def test_a_folder_that_is_no_environment_has_no_packages(tmp_path: Path) -> None:
    assert site_packages(tmp_path) == ()
    with pytest.raises(NotFound, match="not installed"):
        Sources(tmp_path).here("tiny-that-nobody-has")


def test_what_is_installed_here_is_read_without_importing_it(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from trainmedic.kb.sources.search import symbol
from trainmedic.kb.sources.sources import Sources
tree = Sources(Path(sys.argv[1])).here("accelerate")
print(symbol(tree, "accelerate.accelerator", "Accelerator.prepare").text.strip()[:11])
assert "accelerate" not in sys.modules and "urllib.request" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "def prepare"
