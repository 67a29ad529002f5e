"""Deliveries of notifications."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier events are not sent."""
    op.add_column("projects", sa.Column("failing_notifications", sa.JSON(), nullable=True))
    op.create_table(
        "deliveries",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("project_uid", sa.String(), nullable=False),
        sa.Column("notification", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("object", sa.String(), nullable=False),
        sa.Column("event_time", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer().with_variant(sa.BigInteger(), "postgresql"), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("response_status", sa.Integer().with_variant(sa.BigInteger(), "postgresql"), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("namespace", "id"),
    )
    op.create_index("deliveries_due", "deliveries", ["namespace", "status", "next_at"])
    op.create_index("deliveries_project", "deliveries", ["namespace", "project_uid", "id"])
    op.create_index("deliveries_created", "deliveries", ["namespace", "created_at"])
