"""All tables of the first release: the history, API keys and sessions, counters of requests, and the audit log."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, DateTime, Float, Index, Integer, String, Text, UniqueConstraint

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    _history()
    _access()


def _history() -> None:
    op.create_table(
        "turns",
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
    op.create_table("answers", Column("answer_id", String(64), primary_key=True), Column("body", Text, nullable=False))
    op.create_table(
        "feedback",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("answer_id", String(64), nullable=False),
        Column("reaction", String(16), nullable=False),
        Column("reason", Text, nullable=False),
        Column("comment", Text, nullable=False),
        Column("updated_at", DateTime(timezone=True), nullable=False),
        UniqueConstraint("answer_id", name="one_reaction_per_answer"),
    )


def _access() -> None:
    op.create_table(
        "api_keys",
        Column("id", String(16), primary_key=True),
        Column("name", String(100), nullable=False),
        Column("scope", String(8), nullable=False),
        Column("rate_limit", String(64), nullable=False),
        Column("digest", String(64), nullable=False),
        Column("previous_digest", String(64), nullable=False),
        Column("previous_until", DateTime(timezone=True), nullable=True),
        Column("created_at", DateTime(timezone=True), nullable=False),
        Column("expires_at", DateTime(timezone=True), nullable=True),
        Column("revoked_at", DateTime(timezone=True), nullable=True),
    )
    op.create_table(
        "sessions",
        Column("digest", String(64), primary_key=True),
        Column("principal", String(64), nullable=False),
        Column("name", String(100), nullable=False),
        Column("scope", String(8), nullable=False),
        Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
        Column("key_digest", String(64), nullable=False, server_default=""),
    )
    op.create_table(
        "rate_counters",
        Column("key", String(255), primary_key=True),
        Column("hits", Integer, nullable=False),
        Column("expires_at", Float, nullable=False, index=True),
    )
    op.create_table(
        "access_log",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("at", DateTime(timezone=True), nullable=False, index=True),
        Column("who", String(64), nullable=False, index=True),
        Column("name", String(100), nullable=False),
        Column("action", String(100), nullable=False),
        Column("target", String(64), nullable=False),
        Column("result", String(32), nullable=False),
        Column("address", String(90), nullable=False),
        Column("trace_id", String(32), nullable=False),
    )
