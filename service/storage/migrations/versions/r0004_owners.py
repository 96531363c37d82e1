"""Whose each conversation is, and which turns are copies of others."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; conversations from before belong to nobody."""
    op.add_column("turns", Column("owner", String(64), nullable=False, server_default=""))
    op.add_column("turns", Column("copied_from", String(64), nullable=False, server_default=""))
    op.create_index("ix_turns_owner", "turns", ["owner", "conversation_id"])
    op.create_index("ix_turns_copied_from", "turns", ["copied_from"])
