"""Conversations, answers and feedback in SQLite or PostgreSQL. Only masked text is ever stored: without secrets, and
without the names of people and machines, which the answer to the user still has.

A method that writes returns after the commit. Several processes may use one database at once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.engine import Engine, Row

from trainmedic.kb.errors import NotFound
from trainmedic.kb.identities import Identities, identities_of, mask_identities, masked_values
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.storage.database import aware, open_database, reading, scrub, writing
from trainmedic.service.storage.tables import ANSWERS, FEEDBACK, TURNS

REACTIONS = ("up", "down", "resolved")
MAX_TITLE = 120
"""Code points of a conversation's title."""
LATEST = 40
"""Turns of a conversation that are read, besides its first: each may hold megabytes."""

Reason = Literal["not_in_kb", "need_input", "voted_down"]
OURS = frozenset(("url", "link", "versions"))
"""Fields of an answer without names of the user's: links of the knowledge, and versions, which look like addresses."""
_ADD = insert(TURNS)
_KEEP = insert(ANSWERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A user's feedback on an answer."""

    answer_id: str
    reaction: str
    reason: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """One conversation that ended without a resolution. ``question`` is its first message, masked."""

    conversation_id: str
    answer_id: str
    question: str
    asked_at: datetime
    reason: Reason
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer as JSON, and the conversation up to it."""

    answer: Mapping[str, Any]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One line of an owner's list. ``title`` begins the first question, ``answer_id`` is the last answer's."""

    id: str
    title: str
    turns: int
    started: datetime
    last: datetime
    answer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """One question as its owner reads it again. ``files`` are the names of what was attached."""

    question: str
    files: tuple[str, ...]
    asked: datetime
    answer_id: str
    verdict: str
    causes: tuple[str, ...]


def storable(text: str) -> str:
    """Text that any database takes and that holds no secret."""
    # PostgreSQL refuses NUL in text, and no driver encodes a lone surrogate.
    return mask(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")).text


class History:
    """Conversations and feedback in a database, or the one at a URL. Safe to use from several threads.

    The constructor and all methods raise `StoreError` if the database cannot be reached.
    """

    def __init__(self, database: str | Engine) -> None:
        self._engine = open_database(database) if isinstance(database, str) else database

    def ping(self) -> None:
        """Raise `StoreError` unless the database answers."""
        with reading(self._engine) as connection:
            connection.execute(select(1))

    def turns(self, conversation_id: str, owner: str = "") -> tuple[Turn, ...]:
        """The first turn of the owner's conversation and its `LATEST`, oldest first; empty for an unknown one."""
        in_conversation = _in(owner, conversation_id)
        # The limit is in a subquery of its own: not every database accepts one after IN.
        latest = select(TURNS.c.id).where(in_conversation).order_by(TURNS.c.id.desc()).limit(LATEST).subquery()
        first = select(func.min(TURNS.c.id)).where(in_conversation).scalar_subquery()
        from_ = select(func.min(latest.c.id)).scalar_subquery()
        selected = in_conversation & ((TURNS.c.id == first) | (TURNS.c.id >= from_))
        query = select(TURNS).where(selected).order_by(TURNS.c.id)
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        return tuple(_turn(row) for row in rows)

    def stored_answer(self, answer_id: str) -> StoredAnswer | None:
        """A stored answer, or None."""
        place_query = select(TURNS.c.owner, TURNS.c.conversation_id, TURNS.c.id)
        with reading(self._engine) as connection:
            body = connection.execute(select(ANSWERS.c.body).where(ANSWERS.c.answer_id == answer_id)).scalar()
            place = connection.execute(place_query.where(TURNS.c.answer_id == answer_id)).first()
            if body is None or place is None:
                return None
            until = _in(place.owner, place.conversation_id) & (TURNS.c.id <= place.id)
            rows = connection.execute(select(TURNS).where(until).order_by(TURNS.c.id)).all()
        return StoredAnswer(answer=json.loads(body), turns=tuple(_turn(row) for row in rows))

    def branch(self, answer_id: str, owner: str = "") -> str | None:
        """The owner's conversation to go on with after an answer; None if the answer is unknown.

        It is the answer's own if that is the owner's and nothing was asked after it, else a copy up to the answer, with
        addresses of its own.
        """
        place_query = select(TURNS.c.owner, TURNS.c.conversation_id, TURNS.c.id)
        with writing(self._engine) as connection:
            place = connection.execute(place_query.where(TURNS.c.answer_id == answer_id)).first()
            if place is None:
                return None
            in_conversation = _in(place.owner, place.conversation_id)
            last = connection.execute(select(func.max(TURNS.c.id)).where(in_conversation)).scalar()
            if last == place.id and place.owner == owner:
                return str(place.conversation_id)
            until = in_conversation & (TURNS.c.id <= place.id)
            rows = connection.execute(select(TURNS).where(until).order_by(TURNS.c.id)).mappings().all()
            copy = uuid.uuid4().hex
            for row in rows:
                new = {"conversation_id": copy, "answer_id": uuid.uuid4().hex, "owner": owner}
                new["copied_from"] = row["copied_from"] or row["answer_id"]
                turn = {name: value for name, value in row.items() if name != "id"}
                connection.execute(_ADD, turn | new)
                stored = select(ANSWERS.c.body).where(ANSWERS.c.answer_id == row["answer_id"])
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
        owner: str = "",
        continues: bool = False,
    ) -> None:
        """Store one turn, and with it the answer's JSON if it is to be shown again.

        ``versions`` are those of the knowledge, the rules and the index that answered. A turn that ``continues`` a
        conversation is not stored if that was deleted meanwhile.
        """
        attachments = [[str(a.name), str(a.content)] for a in turn.attachments]
        known = identities_of((turn.question, *(text for file in attachments for text in file)))
        values = {
            "conversation_id": conversation_id,
            "answer_id": turn.answer_id,
            "asked_at": now or datetime.now(UTC),
            "question": mask_identities(turn.question, known),
            "attachments": json.dumps(masked_values(attachments, known), ensure_ascii=False),
            "verdict": turn.verdict,
            "causes": json.dumps(list(turn.causes)),
            "said": turn.said,
            "versions": json.dumps(list(versions)),
            "owner": owner,
        }
        with writing(self._engine) as connection:
            earlier = select(TURNS.c.id).where(_in(owner, conversation_id)).limit(1)
            if continues and connection.execute(earlier).first() is None:
                return
            connection.execute(_ADD, values)  # one statement for all turns: compiled once
            if answer is not None:
                body = _without_identities(answer, known)
                connection.execute(_KEEP, {"answer_id": turn.answer_id, "body": body})

    def give_feedback(self, feedback: Feedback, now: datetime | None = None) -> None:
        """Store or replace the feedback on an answer. Raises `NotFound` for an unknown answer."""
        values = {
            "reaction": feedback.reaction,
            "reason": feedback.reason,
            "comment": feedback.comment,
            "updated_at": now or datetime.now(UTC),
        }
        # Locked, so that of two processes the second one finds the row that the first one inserted.
        known = select(TURNS.c.id).where(TURNS.c.answer_id == feedback.answer_id).with_for_update()
        with writing(self._engine) as connection:
            if connection.execute(known).first() is None:
                raise NotFound(f"no answer {feedback.answer_id!r}")
            changed = connection.execute(
                update(FEEDBACK).where(FEEDBACK.c.answer_id == feedback.answer_id).values(**values)
            )
            # Update, then insert: an upsert is spelled differently by every database.
            if changed.rowcount == 0:
                connection.execute(insert(FEEDBACK).values(answer_id=feedback.answer_id, **values))

    def feedback(self, answer_id: str) -> Feedback | None:
        """The feedback on an answer, or None."""
        with reading(self._engine) as connection:
            row = connection.execute(select(FEEDBACK).where(FEEDBACK.c.answer_id == answer_id)).first()
        if row is None:
            return None
        return Feedback(answer_id=row.answer_id, reaction=row.reaction, reason=row.reason, comment=row.comment)

    def unresolved(self) -> tuple[OpenQuestion, ...]:
        """The conversations that ended without a resolution, oldest first."""
        reactions = FEEDBACK.c.answer_id == TURNS.c.answer_id
        query = select(TURNS, FEEDBACK.c.reaction, FEEDBACK.c.comment).join(FEEDBACK, reactions, isouter=True)
        conversations: dict[tuple[str, str], list[Row[Any]]] = {}
        with reading(self._engine) as connection:
            for row in connection.execute(query.order_by(TURNS.c.id)):
                conversations.setdefault((row.owner, row.conversation_id), []).append(row)
        return tuple(found for rows in conversations.values() if (found := _open(rows)) is not None)

    def conversations(self, owner: str, offset: int = 0, limit: int = 50) -> tuple[Conversation, ...]:
        """An owner's conversations, the latest first."""
        groups = (
            select(
                TURNS.c.conversation_id,
                func.count().label("turns"),
                func.min(TURNS.c.id).label("first"),
                func.max(TURNS.c.id).label("last"),
            )
            .where(TURNS.c.owner == owner)
            .group_by(TURNS.c.conversation_id)
            .order_by(func.max(TURNS.c.id).desc())
            .offset(offset)
            .limit(limit)
        )
        with reading(self._engine) as connection:
            listed = connection.execute(groups).all()
            ends = [id for row in listed for id in (row.first, row.last)]
            columns = select(TURNS.c.id, TURNS.c.question, TURNS.c.answer_id, TURNS.c.asked_at)
            rows = {row.id: row for row in connection.execute(columns.where(TURNS.c.id.in_(ends)))}
        return tuple(
            Conversation(
                id=group.conversation_id,
                title=" ".join(rows[group.first].question[:MAX_TITLE].split()),
                turns=group.turns,
                started=aware(rows[group.first].asked_at),
                last=aware(rows[group.last].asked_at),
                answer_id=rows[group.last].answer_id,
            )
            for group in listed
        )

    def past_turns(self, conversation_id: str, owner: str, offset: int = 0, limit: int = 50) -> tuple[PastTurn, ...]:
        """The turns of an owner's conversation, oldest first; nothing for an unknown one."""
        query = select(TURNS).where(_in(owner, conversation_id)).order_by(TURNS.c.id).offset(offset).limit(limit)
        with reading(self._engine) as connection:
            rows = [(_turn(row), aware(row.asked_at)) for row in connection.execute(query)]
        return tuple(
            PastTurn(
                question=turn.question,
                files=tuple(attachment.name for attachment in turn.attachments),
                asked=asked,
                answer_id=turn.answer_id,
                verdict=turn.verdict,
                causes=turn.causes,
            )
            for turn, asked in rows
        )

    def delete(self, conversation_id: str, owner: str | None) -> tuple[str, ...]:
        """Delete an owner's conversation, or with None everyone's of that id; returns the ids of its answers.

        Copies that others went on with from a link go too, with what was asked in them: their answers quote the files
        of this one.
        """
        chosen = TURNS.c.conversation_id == conversation_id
        if owner is not None:
            chosen &= TURNS.c.owner == owner
        with writing(self._engine) as connection:
            ids = set(connection.execute(select(TURNS.c.answer_id).where(chosen)).scalars())
            copies = select(TURNS.c.owner, TURNS.c.conversation_id).where(TURNS.c.copied_from.in_(ids)).distinct()
            for copy in connection.execute(copies).all():
                place = _in(copy.owner, copy.conversation_id)
                ids.update(connection.execute(select(TURNS.c.answer_id).where(place)).scalars())
            for table in (FEEDBACK, ANSWERS, TURNS):
                connection.execute(delete(table).where(table.c.answer_id.in_(ids)))
        scrub(self._engine)
        return tuple(sorted(ids))

    def forget(self, older_than: timedelta, now: datetime | None = None) -> int:
        """Delete turns asked longer ago than ``older_than``, with their feedback. Returns how many turns."""
        limit = (now or datetime.now(UTC)) - older_than
        old = select(TURNS.c.answer_id).where(TURNS.c.asked_at < limit)
        with writing(self._engine) as connection:
            # By hand: SQLite enforces foreign keys only if every connection asks for it.
            connection.execute(delete(FEEDBACK).where(FEEDBACK.c.answer_id.in_(old)))
            connection.execute(delete(ANSWERS).where(ANSWERS.c.answer_id.in_(old)))
            count = connection.execute(delete(TURNS).where(TURNS.c.asked_at < limit)).rowcount
        scrub(self._engine)
        return count

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()


def _in(owner: str, conversation_id: str) -> ColumnElement[bool]:
    return (TURNS.c.owner == owner) & (TURNS.c.conversation_id == conversation_id)


def _without_identities(body: str, known: Identities) -> str:
    """The JSON of an answer without the names of people and machines."""
    # Most answers have none, and looking at the whole is much faster than at each of its texts. Escapes are put back
    # first, because a name may follow a line break.
    whole = body.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    if mask_identities(whole, known) == whole:
        return body
    return json.dumps(masked_values(json.loads(body), known, OURS), ensure_ascii=False)


def _turn(row: Row[Any]) -> Turn:
    return Turn(
        question=row.question,
        attachments=tuple(Attachment(name=n, content=c) for n, c in json.loads(row.attachments)),
        answer_id=row.answer_id,
        verdict=row.verdict,
        causes=tuple(json.loads(row.causes)),
        said=row.said,
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
        asked_at=aware(first.asked_at),
        reason=reason,
        comment=last.comment or "",
    )
