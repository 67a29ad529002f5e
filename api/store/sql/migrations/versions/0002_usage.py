"""Usage of projects by day, and what of it is still to be accounted."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MEASURES = ("runs", "run_ms", "build_ms", "artifact_bytes", "prompt_tokens", "completion_tokens")


def upgrade() -> None:
    """Runs and deployments that are there already are accounted like new ones."""
    op.create_table(
        "usage_days",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("project_uid", sa.String(), nullable=False),
        sa.Column("day", sa.String(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in MEASURES),
        sa.PrimaryKeyConstraint("namespace", "project_uid", "day"),
    )
    op.add_column("deployments", sa.Column("building_at", sa.BigInteger(), nullable=True))
    for table in ("runs", "deployments"):
        op.add_column(table, sa.Column("accounted", sa.Boolean(), nullable=False, server_default=sa.false()))
        op.create_index(f"{table}_accounted", table, ["namespace", "accounted"])
