"""API keys, the sessions of the pages, and counters of requests."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, DateTime, Float, Integer, String

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the three tables."""
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
    )
    op.create_table(
        "rate_counters",
        Column("key", String(255), primary_key=True),
        Column("hits", Integer, nullable=False),
        Column("expires_at", Float, nullable=False, index=True),
    )
