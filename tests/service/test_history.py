"""The history: what a conversation remembers, feedback, and forgetting."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, make_url, text

from trainmedic.kb.errors import NotFound, StoreError
from trainmedic.kb.model.place import Attachment
from trainmedic.service.access import audit_log, keys, limits
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.storage.database import METADATA, engine_of
from trainmedic.service.storage.history import LATEST, Feedback, History
from trainmedic.service.storage.migrations import FOLDER, HEAD, migrate
from trainmedic.ui.cli import main

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def turn(answer_id: str = "a1", question: str = "why nan?") -> Turn:
    pasted = (Attachment(name="train.sh", content="--beta 0.1 # 中文"),)
    return Turn(question=question, attachments=pasted, answer_id=answer_id, verdict="answered", causes=("case-1",))


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that several processes can open."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_database"))
    return f"sqlite:///{tmp_path / 'h.sqlite3'}"


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A connection that is in no transaction."""
    engine = engine_of(url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def history(database: str) -> Iterator[History]:
    opened = History(database)
    yield opened
    opened.close()


def test_a_conversation_comes_back_in_order(history: History) -> None:
    history.add("c", turn("a1", "first"), ["v"])
    history.add("other", turn("a2", "elsewhere"), ["v"])
    history.add("c", turn("a3", "second"), ["v"])
    assert history.turns("c") == (turn("a1", "first"), turn("a3", "second"))


def test_of_a_long_conversation_the_first_turn_and_the_latest_are_read(history: History) -> None:
    for number in range(LATEST + 1):
        history.add("c", turn(f"a{number}"), [])
        history.add("other", turn(f"b{number}"), [])
    every = [each.answer_id for each in history.turns("c")]
    assert every == [f"a{number}" for number in range(LATEST + 1)]
    for number in range(LATEST + 1, LATEST + 4):
        history.add("c", turn(f"a{number}"), [])
    some = [each.answer_id for each in history.turns("c")]
    assert some == ["a0", *(f"a{number}" for number in range(4, LATEST + 4))]


def test_an_unknown_conversation_is_empty(history: History) -> None:
    assert history.turns("nobody") == ()


def test_an_answer_is_kept_with_the_conversation_up_to_it(history: History) -> None:
    history.add("c", turn("a1", "first"), ["v"], answer='{"id": "a1"}')
    history.add("other", turn("a2", "elsewhere"), ["v"], answer='{"id": "a2"}')
    history.add("c", turn("a3", "second"), ["v"], answer='{"id": "a3"}')
    kept = history.stored_answer("a1")
    assert kept is not None
    assert kept.answer == {"id": "a1"}
    assert [t.question for t in kept.turns] == ["first"]
    later = history.stored_answer("a3")
    assert later is not None
    assert [t.question for t in later.turns] == ["first", "second"]


def test_an_answer_that_was_not_kept_is_none(history: History) -> None:
    history.add("c", turn("a1"), ["v"])
    assert history.stored_answer("a1") is None
    assert history.stored_answer("ghost") is None


def test_feedback_replaces_earlier_feedback_on_the_same_answer(history: History) -> None:
    history.add("c", turn(), [])
    history.give_feedback(Feedback(answer_id="a1", reaction="down", comment="no"))
    history.give_feedback(Feedback(answer_id="a1", reaction="resolved", reason="patch"))
    assert history.feedback("a1") == Feedback(answer_id="a1", reaction="resolved", reason="patch")


def test_feedback_on_an_unknown_answer_is_refused(history: History) -> None:
    with pytest.raises(NotFound, match="no answer 'ghost'"):
        history.give_feedback(Feedback(answer_id="ghost", reaction="up"))
    assert history.feedback("ghost") is None


def test_old_turns_are_forgotten_with_their_feedback(history: History) -> None:
    history.add("c", turn("old"), [], now=NOW - timedelta(days=40), answer="{}")
    history.add("c", turn("new"), [], now=NOW)
    history.give_feedback(Feedback(answer_id="old", reaction="up"))
    assert history.forget(timedelta(days=30), now=NOW) == 1
    assert [t.answer_id for t in history.turns("c")] == ["new"]
    assert history.feedback("old") is None
    assert history.stored_answer("old") is None


def test_many_threads_may_write_and_read_at_once(history: History) -> None:
    def converse(number: int) -> list[str]:
        for at in range(4):
            history.add(f"c{number}", turn(f"{number}-{at}"), ["v"])
        return [t.answer_id for t in history.turns(f"c{number}")]

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(converse, range(16)))
    assert found == [[f"{number}-{at}" for at in range(4)] for number in range(16)]


def test_a_history_survives_being_opened_again(database: str) -> None:
    first = History(database)
    first.add("c", turn(), [])
    first.close()
    with closing(History(database)) as again:
        assert again.turns("c") == (turn(),)


WRITER = """
import sys
from itertools import count
from trainmedic.kb.model.place import Attachment
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.storage.history import History
history = History(sys.argv[1])
pasted = (Attachment(name="log", content="x" * 100_000),)
for number in count():
    turn = Turn(question="q", attachments=pasted, answer_id=f"a{number}", verdict="answered", causes=())
    history.add("c", turn, [], answer='{"body": "' + "y" * 10_000 + '"}')
    print(turn.answer_id, flush=True)
"""


def test_no_turn_is_lost_and_none_is_half_stored_when_the_writer_is_killed(database: str) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, database], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [line.strip() for line, _ in zip(writer.stdout, range(50), strict=False)]
        writer.kill()
        acknowledged += [line.strip() for line in writer.stdout]
    assert len(acknowledged) >= 50
    with closing(History(database)) as history:
        assert [name for name in acknowledged if history.stored_answer(name) is None] == []
    with connected(database) as connection:
        turns, answers = (connection.execute(text(f"SELECT count(*) FROM {t}")).scalar() for t in ("turns", "answers"))
    assert turns == answers


def test_processes_that_start_at_once_migrate_one_database_once(database: str) -> None:
    code = "import sys; from trainmedic.service.storage.history import History; History(sys.argv[1]).turns('c')"
    command = [sys.executable, "-c", code, database]
    starting = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(process.communicate()[1], process.returncode) for process in starting] == [("", 0)] * 3


def test_feedback_from_two_processes_on_one_answer_is_stored_once(database: str) -> None:
    with ExitStack() as stack:
        histories = [stack.enter_context(closing(History(database))) for _ in range(4)]
        for number in range(4):
            histories[0].add("c", turn(f"a{number}"), [])
            given = Feedback(answer_id=f"a{number}", reaction="up")
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(lambda history, feedback=given: history.give_feedback(feedback), histories))
            assert histories[1].feedback(f"a{number}") == given


def test_a_database_of_a_newer_release_is_refused_and_left_as_it_is(database: str) -> None:
    History(database).close()
    with connected(database) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer release"):
        History(database)
    with connected(database) as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


def test_a_history_whose_database_was_away_goes_on_when_it_is_back(postgres: str, postgres_database: str) -> None:
    name = make_url(postgres_database).database
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    with closing(History(postgres_database)) as history, connected(postgres) as connection:
        connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
        connection.execute(text(cut))
        with pytest.raises(StoreError, match="cannot be reached"):
            history.add("c", turn("away"), [])
        with pytest.raises(StoreError, match="cannot be reached"):
            history.ping()
        connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
        history.add("c", turn("back"), [])
        connection.execute(text(cut))
        history.ping()
        assert [stored.answer_id for stored in history.turns("c")] == ["back"]


def test_a_database_that_cannot_be_opened_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        History(f"sqlite:///{tmp_path / 'absent' / 'h.sqlite3'}")


def test_what_people_pasted_is_nobody_elses_on_a_shared_machine(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    history = History(f"sqlite:///{path}")
    history.add("c", Turn(question="q", attachments=(), answer_id="a", verdict="answered", causes=()), ())
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    history.close()
    assert modes["history.sqlite3"] == 0o600
    assert set(modes.values()) == {0o600}


def test_migrations_make_the_schema_that_the_history_uses() -> None:
    engine = create_engine("sqlite://")
    migrate(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    assert {limits.DatabaseCounters, audit_log.AuditLog, keys.KeyStore}  # their tables are compared too
    assert ScriptDirectory(str(FOLDER)).get_current_head() == HEAD


def test_opening_a_current_database_does_not_load_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'h.sqlite3'}"
    History(url).close()
    code = (
        "import sys; from trainmedic.service.storage.history import History; History(sys.argv[1]); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True)
    assert "alembic" not in done.stdout.split()


def test_what_a_conversation_left_open_is_told_with_its_reason(history: History) -> None:
    def add(conversation: str, answer: str, verdict: str) -> None:
        history.add(conversation, replace(turn(answer, f"why {conversation}?"), verdict=verdict), [], now=NOW)

    add("unknown", "a1", "answered")
    add("unknown", "a2", "not_in_kb")
    add("asked", "a3", "need_input")
    add("fine", "a4", "answered")
    add("down", "a5", "answered")
    add("resolved", "a6", "need_input")
    history.give_feedback(Feedback(answer_id="a5", reaction="down", comment="it was the proxy"))
    history.give_feedback(Feedback(answer_id="a6", reaction="resolved"))
    found = {question.conversation_id: question for question in history.unresolved()}
    assert {name: question.reason for name, question in found.items()} == {
        "unknown": "not_in_kb",
        "asked": "need_input",
        "down": "voted_down",
    }
    assert (found["down"].comment, found["unknown"].question) == ("it was the proxy", "why unknown?")


def test_the_command_lists_open_questions_the_latest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    assert main(["admin", "history", "unresolved"]) == 0
    assert "nothing yet" in capsys.readouterr().err
    history = History(f"sqlite:///{tmp_path / 'history.sqlite3'}")
    for number, asked in enumerate(("why?", "and why\nthat?")):
        left_open = replace(turn(f"a{number}", asked), verdict="not_in_kb")
        history.add(f"c{number}", left_open, [], now=NOW + timedelta(days=number))
    history.close()
    assert main(["admin", "history", "unresolved", "--top", "1"]) == 0
    assert capsys.readouterr().out == f"{(NOW + timedelta(days=1)).date()}  not_in_kb   and why that?\n"


def test_a_conversation_goes_on_in_place_after_its_last_answer_and_in_a_copy_after_an_earlier_one(
    history: History,
) -> None:
    for name in ("a1", "a2"):
        body = f'{{"id": "{name}", "conversation_id": "c", "answer": "text of {name}"}}'
        history.add("c", turn(name), ["v"], answer=body)
    assert history.branch("a2") == "c"
    copy = history.branch("a1")
    assert copy not in (None, "c")
    (copied,) = history.turns(str(copy))
    assert replace(copied, answer_id="a1") == turn("a1")
    stored = history.stored_answer(copied.answer_id)
    assert stored is not None
    assert stored.answer == {"id": copied.answer_id, "conversation_id": copy, "answer": "text of a1"}
    assert [t.answer_id for t in history.turns("c")] == ["a1", "a2"]
    assert history.branch("ghost") is None
