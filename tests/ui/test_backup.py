"""What is backed up comes back whole, from either kind of database into either."""

from __future__ import annotations

import json
import os
import re
import threading
import zipfile
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from datetime import timedelta
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from sqlalchemy import inspect, make_url, text

from tests.service.test_history import NOW, connected, turn
from trainmedic.kb.errors import StoreError
from trainmedic.kb.store import index
from trainmedic.kb.store.manifest import read_manifest, verify
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import file_of
from trainmedic.service.storage.history import Feedback, History
from trainmedic.ui.backup import back_up, restore
from trainmedic.ui.cli import main
from trainmedic.ui.cli.backup import described
from trainmedic.ui.desk import drafts_folder
from trainmedic.ui.loading import index_root

Damage: TypeAlias = Callable[[dict[str, bytes], dict[str, Any]], None]
"""Changes the files of an archive, and the head that is written with them."""


class Site:
    """An installation with a data folder and a database of its own."""

    def __init__(self, root: Path, url: str = "", teams: str = "") -> None:
        root.mkdir()
        self.settings = Settings.model_validate({"data_dir": root / "data", "database_url": url, "teams": teams})

    def history(self, team: str = "") -> History:
        settings = self.settings.of_team(team) if team else self.settings
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        return History(settings.history_url)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a draft nor a row."""
        every = [self.settings, *(self.settings.of_team(name) for name in self.settings.team_folders)]
        for settings in every:
            if drafts_folder(settings).exists():
                return False
            file = file_of(settings.history_url)
            if file is None or file.exists():
                with connected(settings.history_url) as connection:
                    if inspect(connection).has_table("turns") and connection.execute(text("SELECT 1 FROM turns")).all():
                        return False
        return True


def draft(settings: Settings, content: str = "# a draft") -> Path:
    path = drafts_folder(settings) / "slack" / "one.md"
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    return path


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
    draft(site.settings)
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
    members = read_members(file)
    head = json.loads(members["backup.json"]) | {"revision": revision}
    for table in head["rows"].keys() - {"turns", "answers", "feedback"}:
        del head["rows"][table], members[f"history/{table}.jsonl"]
    members["backup.json"] = json.dumps(head).encode()
    lines = [json.loads(line) for line in members["history/turns.jsonl"].splitlines()]
    kept = [{name: value for name, value in line.items() if name not in without} for line in lines]
    members["history/turns.jsonl"] = "".join(f"{json.dumps(line)}\n" for line in kept).encode()
    write_members(file, members)


def read_members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(file: Path, members: Mapping[str, bytes]) -> None:
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


@pytest.mark.parametrize("damage", ["cut", "flipped", "no archive", "other zip", "outside"])
def test_a_damaged_archive_is_refused(damage: str, tmp_path: Path) -> None:
    first = Site(tmp_path / "first")
    first.history().close()
    file = tmp_path / "backup.zip"
    back_up(first.settings, file)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-40])
    elif damage == "flipped":
        content = bytearray(file.read_bytes())
        content[content.index(b"backup.json") + len(b"backup.json") + 5] ^= 0xFF  # compressed, behind its name
        file.write_bytes(content)
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
    place.history().close()
    assert back_up(place.settings, tmp_path / "backup.zip").pinned == id
    restore(other.settings, tmp_path / "backup.zip")
    assert index.pinned(index_root(other.settings)) == id
    assert verify(index_root(other.settings) / id).id == id


def test_the_packages_version_is_in_the_archive_if_it_is_pinned(knowledge_folder: Path, tmp_path: Path) -> None:
    """The next release has another one."""
    place = Site(tmp_path / "first")
    place.history().close()
    index.pin(index_root(place.settings), read_manifest(index.PREBUILT).id)
    back_up(place.settings, tmp_path / "backup.zip")
    assert "index/manifest.json" in read_members(tmp_path / "backup.zip")


TEAMS = "red=/red,blue=/blue,green=/green"


def fill_teams(site: Site) -> Site:
    """Everybody, red and blue have asked something; nobody of green has."""
    for team in ("", "red", "blue"):
        history = site.history(team)
        history.add("c", turn(f"of {team}"), [])
        history.close()
    return site


def test_a_backup_holds_the_history_and_the_drafts_of_every_team(
    source: Site, target: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for site in (source, target):
        site.settings = site.settings.model_copy(update={"teams": TEAMS})
    fill_teams(source)
    draft(source.settings.of_team("red"), "# of red")
    backup = back_up(source.settings, tmp_path / "backup.zip")
    assert {name: contents.rows.get("turns") for name, contents in backup.teams.items()} == {
        "red": 1,
        "blue": 1,
        "green": None,
    }
    assert restore(target.settings, tmp_path / "backup.zip") == backup
    for team in ("red", "blue"):
        with closing(target.history(team)) as history:
            assert [entry.answer_id for entry in history.turns("c")] == [f"of {team}"]
    with closing(target.history()) as history:
        assert len(history.turns("c")) == 4
    assert (drafts_folder(target.settings.of_team("red")) / "slack" / "one.md").read_text(
        encoding="utf-8"
    ) == "# of red"
    assert described("b.zip", backup).splitlines()[-1] == "team green: no history, 0 drafts"


def test_a_teams_backup_alone_is_restored_as_that_team(postgres_database: str, tmp_path: Path) -> None:
    source, target = Site(tmp_path / "source", "", TEAMS), Site(tmp_path / "target", postgres_database, TEAMS)
    fill_teams(source)
    back_up(source.settings.of_team("red"), tmp_path / "red.zip")
    restore(target.settings.of_team("red"), tmp_path / "red.zip")
    with closing(target.history("red")) as history:
        assert [entry.answer_id for entry in history.turns("c")] == ["of red"]


def test_a_backup_with_a_team_that_the_settings_do_not_have_is_refused(tmp_path: Path) -> None:
    back_up(fill_teams(Site(tmp_path / "source", "", TEAMS)).settings, tmp_path / "backup.zip")
    place = Site(tmp_path / "place", "", "red=/red,blue=/blue")
    with pytest.raises(StoreError, match="holds the team green, which the setting teams does not name"):
        restore(place.settings, tmp_path / "backup.zip")
    assert place.is_empty


def test_a_backup_of_a_release_before_teams_is_restored(source: Site, tmp_path: Path) -> None:
    back_up(source.settings, tmp_path / "backup.zip")
    members = read_members(tmp_path / "backup.zip")
    head = json.loads(members["backup.json"]) | {"format": 1}
    del head["teams"]
    write_members(tmp_path / "backup.zip", members | {"backup.json": json.dumps(head).encode()})
    place = Site(tmp_path / "place")
    restore(place.settings, tmp_path / "backup.zip")
    with closing(place.history()) as history:
        assert len(history.turns("c")) == 3


@pytest.mark.parametrize("database", ["", "file", "postgresql"])
def test_a_backup_of_no_history_fails_and_makes_no_database(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_database") if database == "postgresql" else ""
    place = Site(tmp_path / "place", url)
    if database == "file":  # and no tables in it
        place.settings.data_dir.mkdir()
        (place.settings.data_dir / "history.sqlite3").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match="there is no history in"):
        back_up(place.settings, tmp_path / "backup.zip")
    assert [path for path in sorted(tmp_path.rglob("*")) if not path.name.endswith(("-wal", "-shm"))] == before


def test_a_service_that_stores_no_history_is_backed_up_without_one(tmp_path: Path) -> None:
    place, other = Site(tmp_path / "place"), Site(tmp_path / "other")
    draft(place.settings)
    settings = place.settings.model_copy(update={"history_days": 0})
    backup = back_up(settings, tmp_path / "backup.zip")
    assert (backup.revision, backup.rows, backup.drafts) == (None, {}, 1)
    restore(other.settings, tmp_path / "backup.zip")
    assert (drafts_folder(other.settings) / "slack" / "one.md").is_file()


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a pipe"])
def test_a_backup_replaces_regular_files_only(kind: str, tmp_path: Path) -> None:
    place = Site(tmp_path / "place")
    place.history().close()
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    else:
        os.mkfifo(tmp_path / "pipe")
        target.symlink_to(tmp_path / "pipe")
    with pytest.raises(StoreError, match="is not a regular file"):
        back_up(place.settings, tmp_path / "pipe" if kind == "pipe" else target)
    assert not target.is_file()


def test_a_backup_through_a_link_replaces_the_file_that_it_leads_to(tmp_path: Path) -> None:
    place = Site(tmp_path / "place")
    place.history().close()
    (tmp_path / "latest.zip").symlink_to(tmp_path / "one.zip")
    back_up(place.settings, tmp_path / "latest.zip")
    assert zipfile.is_zipfile(tmp_path / "one.zip")
    assert (tmp_path / "latest.zip").is_symlink()


def lose(members: dict[str, bytes], head: dict[str, Any]) -> None:
    del members["history/turns.jsonl"]


def forget_table(members: dict[str, bytes], head: dict[str, Any]) -> None:
    del head["rows"]["turns"]


def lose_draft(members: dict[str, bytes], head: dict[str, Any]) -> None:
    del members["drafts/slack/one.md"]


def cut_line(members: dict[str, bytes], head: dict[str, Any]) -> None:
    members["history/turns.jsonl"] = members["history/turns.jsonl"][:-20]


def write_list(members: dict[str, bytes], head: dict[str, Any]) -> None:
    members["history/answers.jsonl"] = b"[1]\n[2]\n[3]\n"


def write_column(members: dict[str, bytes], head: dict[str, Any]) -> None:
    members["history/answers.jsonl"] = b'{"answer": 1}\n' * 3


def write_number(members: dict[str, bytes], head: dict[str, Any]) -> None:
    members["history/turns.jsonl"] = re.sub(rb'"question": "[^"]*"', b'"question": 7', members["history/turns.jsonl"])


def write_date(members: dict[str, bytes], head: dict[str, Any]) -> None:
    members["history/turns.jsonl"] = re.sub(rb'"20\d\d-', b'"yesterday-', members["history/turns.jsonl"])


def write_bytes(members: dict[str, bytes], head: dict[str, Any]) -> None:
    members["history/turns.jsonl"] = members["history/turns.jsonl"].replace(b'"question": "', b'"question": "\xff')


def write_surrogate(members: dict[str, bytes], head: dict[str, Any]) -> None:
    members["history/turns.jsonl"] = members["history/turns.jsonl"].replace(b'"question": "', b'"question": "\\ud800')


def list_rows(members: dict[str, bytes], head: dict[str, Any]) -> None:
    head["rows"] = list(head["rows"])


def count_more(members: dict[str, bytes], head: dict[str, Any]) -> None:
    head["rows"]["turns"] += 1


def pin_nothing(members: dict[str, bytes], head: dict[str, Any]) -> None:
    head["pinned"] = "0123456789abcdef"


def pin_other(members: dict[str, bytes], head: dict[str, Any]) -> None:
    pin_nothing(members, head)
    members["index/manifest.json"] = (index.PREBUILT / "manifest.json").read_bytes()


def no_head(members: dict[str, bytes], head: dict[str, Any]) -> None:
    head.clear()


DAMAGES = (
    (lose, "the tables of its history"),
    (forget_table, "the tables of its history"),
    (lose_draft, "its drafts are not those"),
    (cut_line, "line 3 of the backup's table turns is damaged"),
    (write_list, "line 1 of the backup's table answers is not an object"),
    (write_column, "unknown column answer"),
    (write_number, "line 1 of the backup's table turns is damaged"),
    (write_date, "line 1 of the backup's table turns is damaged"),
    (write_bytes, "line 1 of the backup's table turns is damaged"),
    (write_surrogate, "the history cannot be written"),
    (list_rows, "cannot be read"),
    (no_head, "cannot be read"),
    (count_more, "turns has 3 rows"),
    (pin_nothing, "pins the version 0123456789abcdef, of which there is no index"),
    (pin_other, "but holds the index"),
)


@pytest.mark.parametrize(("damage", "problem"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_nothing_is_restored_of_an_archive_that_does_not_hold_what_it_says(
    damage: Damage, problem: str, archive: Path, tmp_path: Path
) -> None:
    target = Site(tmp_path / "target")
    members = read_members(archive)
    head = json.loads(members["backup.json"])
    damage(members, head)
    write_members(tmp_path / "damaged.zip", members | {"backup.json": json.dumps(head).encode()})
    with pytest.raises(StoreError, match=problem):
        restore(target.settings, tmp_path / "damaged.zip")
    assert target.is_empty
    assert index.pinned(index_root(target.settings)) is None
    restore(target.settings, archive)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of three turns and a draft."""
    root = tmp_path_factory.mktemp("archive")
    site = Site(root / "source")
    with closing(site.history()) as history:
        for number in range(3):
            history.add("c", turn(f"a{number}"), [], NOW, "{}")
    draft(site.settings)
    back_up(site.settings, root / "backup.zip")
    return root / "backup.zip"


def test_what_was_restored_of_others_is_undone_if_a_team_fails(target: Site, tmp_path: Path) -> None:
    target.settings = target.settings.model_copy(update={"teams": TEAMS})
    source = fill_teams(Site(tmp_path / "source", "", TEAMS))
    draft(source.settings)
    back_up(source.settings, tmp_path / "backup.zip")
    members = read_members(tmp_path / "backup.zip")
    members["teams/blue/history/turns.jsonl"] = b"{}}\n"
    write_members(tmp_path / "damaged.zip", members)
    with pytest.raises(StoreError, match="line 1 of the backup's table turns is damaged"):
        restore(target.settings, tmp_path / "damaged.zip")
    assert target.is_empty
    restore(target.settings, tmp_path / "backup.zip")


def test_a_backup_goes_through_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with closing(Site(tmp_path / "site").history()) as history:
        history.add("c", turn(), [])
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "site" / "data"))
    assert main(["backup", "-"]) == 0
    streamed = capfdbinary.readouterr()
    assert b"standard output: " in streamed.err
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "new"))
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(streamed.out)))
    assert main(["restore", "-"]) == 0
    assert b"1 turns" in capfdbinary.readouterr().err


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
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "nowhere"))
    assert main(["backup", str(tmp_path / "b.zip")]) == 3
    assert "there is no history" in capsys.readouterr().err
