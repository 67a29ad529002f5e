"""Traces: the callers' spans, the times of admission, and what is to be exported."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier runs and builds are not exported."""
    op.add_column("runs", sa.Column("traceparent", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("admitted_at", sa.BigInteger(), nullable=True))
    op.create_table(
        "trace_exports",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "kind", "name"),
    )
    op.create_index("trace_exports_due", "trace_exports", ["namespace", "next_at"])
    op.create_index("trace_exports_queued", "trace_exports", ["namespace", "queued_at"])
