"""The fingerprint of each turn's incident."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; turns from before have no fingerprint."""
    op.add_column("turns", Column("fingerprint", String(16), nullable=False, server_default=""))
    op.create_index("ix_turns_fingerprint", "turns", ["fingerprint"])
