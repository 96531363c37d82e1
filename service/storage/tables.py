"""The tables of the history."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Index, Integer, String, Table, Text, UniqueConstraint

from trainmedic.service.storage.database import METADATA

TURNS = Table(
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
    Column("said", Text, nullable=False, server_default=""),
    Column("versions", Text, nullable=False),
    Column("owner", String(64), nullable=False, server_default=""),
    Column("copied_from", String(64), nullable=False, server_default="", index=True),
    Index("ix_turns_owner", "owner", "conversation_id"),
)
ANSWERS = Table(
    "answers",
    METADATA,
    Column("answer_id", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)
FEEDBACK = Table(
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
