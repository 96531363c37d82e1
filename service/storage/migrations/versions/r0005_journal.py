"""The audit log."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, DateTime, Integer, String

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create its table."""
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
