"""Alembic's entry: runs the steps on the connection that `api.store.sql.migrate` opened."""

from alembic import context

from api.store.sql.schema import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
