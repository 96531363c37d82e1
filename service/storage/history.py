"""Conversations, answers and feedback in any SQL database. Only masked text is ever stored."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    Column,
    DateTime,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.engine import Engine, Row, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from trainmedic.kb.errors import NotFound, StoreError
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.service.storage.migrations import migrate
from trainmedic.service.storage.outcomes import OpenQuestion, Reason, Sightings

REACTIONS = ("up", "down", "resolved")
MAX_STORED = 1_000_000
"""Code points of one text that a conversation remembers."""
LATEST = 40
"""Turns of a conversation that are read, besides its first: each may hold megabytes."""

METADATA = MetaData()
_turns = Table(
    "turns",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("conversation_id", String(64), nullable=False, index=True),
    Column("answer_id", String(64), nullable=False, unique=True),
    Column("asked_at", DateTime(timezone=True), nullable=False, index=True),
    Column("question", Text, nullable=False),
    Column("attachments", Text, nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("causes", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("fingerprint", String(16), nullable=False, server_default="", index=True),
)
_answers = Table(
    "answers",
    METADATA,
    Column("answer_id", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)
_feedback = Table(
    "feedback",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("answer_id", String(64), nullable=False),
    Column("reaction", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    UniqueConstraint("answer_id", name="one_reaction_per_answer"),
)
_ADD = insert(_turns)
_KEEP = insert(_answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question of a conversation with its attachments, masked, and the outcome."""

    question: str
    attachments: tuple[Attachment, ...]
    answer_id: str
    verdict: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A user's feedback on an answer."""

    answer_id: str
    reaction: str
    reason: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedTurn:
    """A question whose answer its user marked as the one that resolved it (``reaction``: up or resolved)."""

    turn: Turn
    reaction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer as JSON, and the conversation up to it."""

    answer: Mapping[str, Any]
    turns: tuple[Turn, ...]


def turn_of(
    question: str,
    sources: Sequence[Source] = (),
    *,
    answer_id: str = "",
    verdict: str = "",
    causes: tuple[str, ...] = (),
) -> Turn:
    """A turn of masked texts, cut to `MAX_STORED`."""
    return Turn(
        question=question[:MAX_STORED],
        attachments=tuple(Attachment(name=source.name or "", content=source.text[:MAX_STORED]) for source in sources),
        answer_id=answer_id,
        verdict=verdict,
        causes=causes,
    )


def storable(text: str) -> str:
    """Text that any database takes and that holds no secret."""
    # PostgreSQL refuses NUL in text, and no driver encodes a lone surrogate.
    return mask(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")).text


class History:
    """Conversations and feedback in the database at ``url``. Safe to use from several threads.

    Raises `StoreError` if the database cannot be reached.
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)
        try:
            migrate(self._engine)
        except SQLAlchemyError as error:
            name = make_url(url).render_as_string(hide_password=True)
            raise StoreError(f"the history at {name} cannot be opened", hint=type(error).__name__) from error

    def turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """The conversation's first turn and its `LATEST`, oldest first; empty for an unknown one."""
        in_conversation = _turns.c.conversation_id == conversation_id
        # The limit is in a subquery of its own: not every database accepts one after IN.
        latest = select(_turns.c.id).where(in_conversation).order_by(_turns.c.id.desc()).limit(LATEST).subquery()
        first = select(func.min(_turns.c.id)).where(in_conversation).scalar_subquery()
        from_ = select(func.min(latest.c.id)).scalar_subquery()
        selected = in_conversation & ((_turns.c.id == first) | (_turns.c.id >= from_))
        query = select(_turns).where(selected).order_by(_turns.c.id)
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return tuple(_turn(row) for row in rows)

    def stored_answer(self, answer_id: str) -> StoredAnswer | None:
        """A stored answer, or None."""
        place_query = select(_turns.c.conversation_id, _turns.c.id).where(_turns.c.answer_id == answer_id)
        with self._engine.connect() as connection:
            body = connection.execute(select(_answers.c.body).where(_answers.c.answer_id == answer_id)).scalar()
            place = connection.execute(place_query).first()
            if body is None or place is None:
                return None
            until = (_turns.c.conversation_id == place.conversation_id) & (_turns.c.id <= place.id)
            rows = connection.execute(select(_turns).where(until).order_by(_turns.c.id)).all()
        return StoredAnswer(answer=json.loads(body), turns=tuple(_turn(row) for row in rows))

    def branch(self, answer_id: str) -> str | None:
        """The conversation to go on with after an answer; None if the answer is unknown.

        It is the answer's own if nothing was asked after it, else a copy up to the answer, with addresses of its own.
        """
        ours = select(_turns.c.conversation_id, _turns.c.id).where(_turns.c.answer_id == answer_id)
        with self._engine.begin() as connection:
            place = connection.execute(ours).first()
            if place is None:
                return None
            in_conversation = _turns.c.conversation_id == place.conversation_id
            last = connection.execute(select(func.max(_turns.c.id)).where(in_conversation)).scalar()
            if last == place.id:
                return str(place.conversation_id)
            until = in_conversation & (_turns.c.id <= place.id)
            rows = connection.execute(select(_turns).where(until).order_by(_turns.c.id)).mappings().all()
            copy = uuid.uuid4().hex
            for row in rows:
                new = {"conversation_id": copy, "answer_id": uuid.uuid4().hex}
                turn = {name: value for name, value in row.items() if name != "id"}
                # Without its fingerprint: a copy is no second sighting of the failure.
                connection.execute(_ADD, turn | new | {"fingerprint": ""})
                stored = select(_answers.c.body).where(_answers.c.answer_id == row["answer_id"])
                body = connection.execute(stored).scalar()
                if body is not None:
                    renamed = json.loads(body) | {"id": new["answer_id"], "conversation_id": copy}
                    connection.execute(
                        _KEEP, {"answer_id": new["answer_id"], "body": json.dumps(renamed, ensure_ascii=False)}
                    )
        return copy

    def add(
        self,
        conversation_id: str,
        turn: Turn,
        versions: Sequence[str],
        now: datetime | None = None,
        answer: str | None = None,
        fingerprint: str = "",
    ) -> None:
        """Store one turn, and with it the answer's JSON if it is to be shown again.

        ``versions`` are those of the knowledge, the rules and the index that answered.
        """
        values = {
            "conversation_id": conversation_id,
            "answer_id": turn.answer_id,
            "asked_at": now or datetime.now(UTC),
            "question": turn.question,
            "attachments": json.dumps([[a.name, a.content] for a in turn.attachments], ensure_ascii=False),
            "verdict": turn.verdict,
            "causes": json.dumps(list(turn.causes)),
            "versions": json.dumps(list(versions)),
            "fingerprint": fingerprint,
        }
        with self._engine.begin() as connection:
            connection.execute(_ADD, values)  # one statement for all turns: compiled once
            if answer is not None:
                connection.execute(_KEEP, {"answer_id": turn.answer_id, "body": answer})

    def give_feedback(self, feedback: Feedback, now: datetime | None = None) -> None:
        """Store or replace the feedback on an answer. Raises `NotFound` for an unknown answer."""
        values = {
            "reaction": feedback.reaction,
            "reason": feedback.reason,
            "comment": feedback.comment,
            "updated_at": now or datetime.now(UTC),
        }
        known = select(_turns.c.id).where(_turns.c.answer_id == feedback.answer_id)
        with self._engine.begin() as connection:
            if connection.execute(known).first() is None:
                raise NotFound(f"no answer {feedback.answer_id!r}")
            changed = connection.execute(
                update(_feedback).where(_feedback.c.answer_id == feedback.answer_id).values(**values)
            )
            # Update, then insert: an upsert is spelled differently by every database.
            if changed.rowcount == 0:
                connection.execute(insert(_feedback).values(answer_id=feedback.answer_id, **values))

    def feedback(self, answer_id: str) -> Feedback | None:
        """The feedback on an answer, or None."""
        with self._engine.connect() as connection:
            row = connection.execute(select(_feedback).where(_feedback.c.answer_id == answer_id)).first()
        if row is None:
            return None
        return Feedback(answer_id=row.answer_id, reaction=row.reaction, reason=row.reason, comment=row.comment)

    def sightings(self, fingerprint: str, conversation_id: str = "") -> Sightings | None:
        """The other conversations about the same failure; None if there are none."""
        if not fingerprint:
            return None
        conversations = func.count(func.distinct(_turns.c.conversation_id))
        others = (_turns.c.fingerprint == fingerprint) & (_turns.c.conversation_id != conversation_id)
        with self._engine.connect() as connection:
            count, last = connection.execute(select(conversations, func.max(_turns.c.asked_at)).where(others)).one()
        return Sightings(count=count, last=_aware(last)) if count else None

    def sightings_of_causes(self) -> Mapping[str, Sightings]:
        """How often each cause came first in an answer that was given, by its id."""
        columns = select(_turns.c.conversation_id, _turns.c.causes, _turns.c.asked_at)
        conversations: dict[str, set[str]] = {}
        last: dict[str, datetime] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(columns.where(_turns.c.verdict == "answered").order_by(_turns.c.id)):
                for cause in json.loads(row.causes)[:1]:
                    conversations.setdefault(cause, set()).add(row.conversation_id)
                    last[cause] = _aware(row.asked_at)
        return {cause: Sightings(count=len(ids), last=last[cause]) for cause, ids in sorted(conversations.items())}

    def recurring(self, least: int = 2) -> tuple[tuple[Turn, Sightings], ...]:
        """Failures that at least ``least`` conversations were about, with the latest turn of each; commonest first."""
        conversations = func.count(func.distinct(_turns.c.conversation_id))
        groups = (
            select(conversations.label("count"), func.max(_turns.c.asked_at).label("last"), func.max(_turns.c.id))
            .where(_turns.c.fingerprint != "")
            .group_by(_turns.c.fingerprint)
            .having(conversations >= least)
        )
        with self._engine.connect() as connection:
            found = connection.execute(groups).all()
            rows = {
                row.id: row for row in connection.execute(select(_turns).where(_turns.c.id.in_([g[2] for g in found])))
            }
        listed = [(_turn(rows[id]), Sightings(count=count, last=_aware(last))) for count, last, id in found]
        return tuple(sorted(listed, key=lambda item: (-item[1].count, -item[1].last.timestamp())))

    def unresolved(self) -> tuple[OpenQuestion, ...]:
        """The conversations that ended without a resolution, oldest first."""
        reactions = _feedback.c.answer_id == _turns.c.answer_id
        query = select(_turns, _feedback.c.reaction, _feedback.c.comment).join(_feedback, reactions, isouter=True)
        conversations: dict[str, list[Row[Any]]] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(query.order_by(_turns.c.id)):
                conversations.setdefault(row.conversation_id, []).append(row)
        return tuple(found for rows in conversations.values() if (found := _open(rows)) is not None)

    def confirmed(self) -> tuple[ConfirmedTurn, ...]:
        """The questions whose answers were marked as right, oldest first."""
        right = _feedback.c.reaction.in_(("up", "resolved"))
        query = select(_turns, _feedback.c.reaction).join(_feedback, _feedback.c.answer_id == _turns.c.answer_id)
        with self._engine.connect() as connection:
            rows = connection.execute(query.where(right).order_by(_turns.c.id)).all()
        return tuple(ConfirmedTurn(turn=_turn(row), reaction=row.reaction) for row in rows)

    def forget(self, older_than: timedelta, now: datetime | None = None) -> int:
        """Delete turns asked longer ago than ``older_than``, with their feedback. Returns how many turns."""
        limit = (now or datetime.now(UTC)) - older_than
        old = select(_turns.c.answer_id).where(_turns.c.asked_at < limit)
        with self._engine.begin() as connection:
            # By hand: SQLite enforces foreign keys only if every connection asks for it.
            connection.execute(delete(_feedback).where(_feedback.c.answer_id.in_(old)))
            connection.execute(delete(_answers).where(_answers.c.answer_id.in_(old)))
            return connection.execute(delete(_turns).where(_turns.c.asked_at < limit)).rowcount

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()


def _turn(row: Row[Any]) -> Turn:
    return Turn(
        question=row.question,
        attachments=tuple(Attachment(name=n, content=c) for n, c in json.loads(row.attachments)),
        answer_id=row.answer_id,
        verdict=row.verdict,
        causes=tuple(json.loads(row.causes)),
    )


def _open(rows: Sequence[Row[Any]]) -> OpenQuestion | None:
    """What a conversation left open: an answer that was voted down, else an end without one."""
    first, last = rows[0], rows[-1]
    voted = [row for row in rows if row.reaction]
    reason: Reason
    if voted and voted[-1].reaction == "down":
        reason, last = "voted_down", voted[-1]
    elif voted or last.verdict not in ("not_in_kb", "need_input"):
        return None
    else:
        reason = "not_in_kb" if last.verdict == "not_in_kb" else "need_input"
    return OpenQuestion(
        conversation_id=first.conversation_id,
        answer_id=last.answer_id,
        question=first.question,
        asked_at=_aware(first.asked_at),
        reason=reason,
        fingerprint=next((row.fingerprint for row in reversed(rows) if row.fingerprint), ""),
        causes=tuple(json.loads(last.causes)),
        comment=last.comment or "",
    )


def _aware(time: datetime | str) -> datetime:
    """A stored time; SQLite stores it without its zone, and aggregates give text."""
    parsed = datetime.fromisoformat(time) if isinstance(time, str) else time
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def _engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        # A database server closes idle connections; the ping replaces them before a query fails.
        return create_engine(parsed, pool_pre_ping=True)
    if not parsed.database or parsed.database == ":memory:":
        # One connection is the whole database; threads take turns with it, as their transactions must not mix.
        return create_engine(
            parsed, poolclass=QueuePool, pool_size=1, max_overflow=0, connect_args={"check_same_thread": False}
        )
    with suppress(OSError):  # connecting reports what is wrong with the path
        # Private on a shared machine; SQLite gives its journal files the same mode.
        os.close(os.open(parsed.database, os.O_CREAT | os.O_RDWR, 0o600))
    engine = create_engine(parsed, connect_args={"check_same_thread": False, "timeout": 10})

    @event.listens_for(engine, "connect")
    def _write_ahead(connection: object, _record: object) -> None:
        # Readers must not wait for the writer: answers are stored while others are asked.
        cursor = connection.cursor()  # type: ignore[attr-defined]
        cursor.execute("PRAGMA journal_mode=WAL")
        # Safe with a write-ahead log; a power failure may lose the last turns, never corrupt the file.
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    return engine
