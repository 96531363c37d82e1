"""Run by alembic: the migrations on the connection that `service.storage.migrations` opened."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
