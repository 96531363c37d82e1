"""Conversations, answers and feedback."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, DateTime, Integer, String, Text, UniqueConstraint

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the three tables."""
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
        Column("versions", Text, nullable=False),
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
