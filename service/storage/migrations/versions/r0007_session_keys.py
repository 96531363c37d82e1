"""Which secret of its key opened a session."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String

revision = "0007"
down_revision = "0005"


def upgrade() -> None:
    """Of those there are it is not known; they end when their key gets a new secret."""
    op.add_column("sessions", Column("key_digest", String(64), nullable=False, server_default=""))
