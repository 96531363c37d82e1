"""The team of a key and of a session."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Those there are belong to no team."""
    for table in ("api_keys", "sessions"):
        op.add_column(table, Column("team", String(32), nullable=False, server_default=""))
