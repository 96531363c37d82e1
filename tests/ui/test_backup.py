"""What is backed up comes back whole, from either kind of database into either."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Collection
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from tests.service.test_history import NOW, connected, turn
from trainmedic.kb.errors import StoreError
from trainmedic.kb.store import index
from trainmedic.kb.store.manifest import read_manifest, verify
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import Feedback, History
from trainmedic.ui.backup import back_up, restore
from trainmedic.ui.cli import main
from trainmedic.ui.desk import drafts_folder
from trainmedic.ui.loading import index_root


class Site:
    """An installation with a data folder and a database of its own."""

    def __init__(self, root: Path, url: str) -> None:
        root.mkdir()
        self.settings = Settings.model_validate({"data_dir": root / "data", "database_url": url})

    def history(self) -> History:
        return History(self.settings.history_url)


@pytest.fixture(params=["sqlite", "postgresql"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    postgres = request.param == "postgresql"
    site = Site(tmp_path / "source", request.getfixturevalue("postgres_database") if postgres else "")
    site.settings.data_dir.mkdir()
    history = site.history()
    for number in range(3):
        asked = NOW + timedelta(days=number)
        body = json.dumps({"id": f"a{number}", "text": "中文 \x85 \u2028"}, ensure_ascii=False)
        history.add("c", turn(f"a{number}"), ["v"], asked, body, fingerprint="f")
    history.give_feedback(Feedback(answer_id="a1", reaction="resolved", comment="it was the proxy"), NOW)
    history.close()
    draft = drafts_folder(site.settings) / "slack" / "one.md"
    draft.parent.mkdir(parents=True)
    draft.write_text("# a draft", encoding="utf-8")
    return site


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    url = f"sqlite:///{tmp_path / 'other.sqlite3'}"
    return Site(
        tmp_path / "target", request.getfixturevalue("other_database") if request.param == "postgresql" else url
    )


@pytest.fixture
def other_database(postgres: str, postgres_database: str) -> str:
    name = f"{make_url(postgres_database).database}_other"
    with connected(postgres) as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    return make_url(postgres).set(database=name).render_as_string(hide_password=False)


def test_a_backup_restores_conversations_feedback_and_drafts(source: Site, target: Site, tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    backup = back_up(source.settings, file, NOW)
    assert (backup.rows["turns"], backup.rows["answers"], backup.rows["feedback"], backup.drafts) == (3, 3, 1, 1)
    assert file.stat().st_mode & 0o777 == 0o600
    # The service was started before, which made the tables.
    target.settings.data_dir.mkdir()
    target.history().close()
    assert restore(target.settings, file) == backup
    assert (drafts_folder(target.settings) / "slack" / "one.md").read_text(encoding="utf-8") == "# a draft"
    with closing(source.history()) as before, closing(target.history()) as after:
        same(before, after)


def same(before: History, after: History) -> None:
    assert after.turns("c") == before.turns("c")
    assert [after.stored_answer(name) for name in ("a0", "a2")] == [before.stored_answer(name) for name in ("a0", "a2")]
    assert after.unresolved() == before.unresolved()
    assert after.recurring(1) == before.recurring(1)
    assert after.feedback("a1") == before.feedback("a1")
    # What is written next gets an id of its own.
    after.add("c", turn("next"), [])
    assert after.turns("c")[-1].answer_id == "next"


def test_a_backup_made_while_turns_are_written_holds_each_whole_or_not_at_all(source: Site, tmp_path: Path) -> None:
    writing, history = threading.Event(), source.history()

    def write() -> None:
        for number in range(400):
            history.add("busy", turn(f"busy{number}"), [], answer="{}")
            if number == 5:
                writing.set()

    thread = threading.Thread(target=write)
    thread.start()
    writing.wait(10)
    backups = [back_up(source.settings, tmp_path / f"{n}.zip") for n in range(3)]
    thread.join()
    history.close()
    assert all(backup.rows["turns"] == backup.rows["answers"] >= 9 for backup in backups)
    place = Site(tmp_path / "again", "")
    restore(place.settings, tmp_path / "2.zip")
    assert len(place.history().unresolved()) == 0
    assert place.history().stored_answer("busy5") is not None


def test_a_backup_of_an_older_release_is_migrated_and_one_of_a_newer_is_refused(source: Site, tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    back_up(source.settings, file)
    rewrite(file, revision="0001", without=("fingerprint", "owner", "copied_from"))
    place = Site(tmp_path / "older", "")
    restore(place.settings, file)
    assert len(place.history().turns("c")) == 3
    rewrite(file, revision="9999")
    newer = Site(tmp_path / "newer", "")
    with pytest.raises(StoreError, match="newer release"):
        restore(newer.settings, file)
    assert newer.history().turns("c") == ()


def rewrite(file: Path, revision: str, without: Collection[str] = ()) -> None:
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members["backup.json"]) | {"revision": revision}
    head["rows"] = {name: head["rows"][name] for name in ("turns", "answers", "feedback")}
    members["backup.json"] = json.dumps(head).encode()
    lines = [json.loads(line) for line in members["history/turns.jsonl"].splitlines()]
    kept = [{name: value for name, value in line.items() if name not in without} for line in lines]
    members["history/turns.jsonl"] = "".join(f"{json.dumps(line)}\n" for line in kept).encode()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_nothing_is_restored_over_a_history_or_drafts_that_exist(tmp_path: Path) -> None:
    first = Site(tmp_path / "first", "")
    first.settings.data_dir.mkdir()
    first.history().add("c", turn(), [])
    back_up(first.settings, tmp_path / "backup.zip")
    with pytest.raises(StoreError, match="holds turns already"):
        restore(first.settings, tmp_path / "backup.zip")
    assert len(first.history().turns("c")) == 1
    second = Site(tmp_path / "second", "")
    drafts_folder(second.settings).mkdir(parents=True)
    (drafts_folder(second.settings) / "mine.md").touch()
    with pytest.raises(StoreError, match="holds drafts already"):
        restore(second.settings, tmp_path / "backup.zip")


@pytest.mark.parametrize("damage", ["cut", "no archive", "other zip", "outside"])
def test_a_damaged_archive_is_refused(damage: str, tmp_path: Path) -> None:
    first = Site(tmp_path / "first", "")
    first.settings.data_dir.mkdir()
    file = tmp_path / "backup.zip"
    back_up(first.settings, file)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-40])
    elif damage == "no archive":
        file.write_text("hello", encoding="utf-8")
    else:
        with zipfile.ZipFile(file, "w" if damage == "other zip" else "a") as archive:
            archive.writestr("drafts/../../escaped" if damage == "outside" else "x", "x")
    place = Site(tmp_path / "place", "")
    with pytest.raises(StoreError):
        restore(place.settings, file)
    assert not (tmp_path / "escaped").exists()


def test_the_pinned_version_comes_with_its_index(knowledge_folder: Path, tmp_path: Path) -> None:
    place, other = Site(tmp_path / "first", ""), Site(tmp_path / "other", "")
    root = index_root(place.settings)
    id = read_manifest(index.PREBUILT).id
    with index.locked(root):
        copy = root / ".copy"
        copy.mkdir()
        for path in index.PREBUILT.rglob("*"):
            if path.is_file():
                (copy / path.relative_to(index.PREBUILT)).parent.mkdir(exist_ok=True)
                (copy / path.relative_to(index.PREBUILT)).write_bytes(path.read_bytes())
        index.adopt(copy, root)
    index.pin(root, id)
    assert back_up(place.settings, tmp_path / "backup.zip").pinned == id
    restore(other.settings, tmp_path / "backup.zip")
    assert index.pinned(index_root(other.settings)) == id
    assert verify(index_root(other.settings) / id).id == id


def test_the_command_line_backs_up_and_restores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(tmp_path / "site", "")
    site.settings.data_dir.mkdir()
    site.history().add("c", turn(), [])
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(site.settings.data_dir))
    assert main(["backup", str(tmp_path / "b.zip"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["turns"] == 1
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "new"))
    assert main(["restore", str(tmp_path / "b.zip")]) == 0
    assert "1 turns" in capsys.readouterr().err
    assert main(["restore", str(tmp_path / "b.zip")]) == 3
    assert "empty database" in capsys.readouterr().err
