"""Labels of runs, and indexes to list runs by label and by time of creation."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier runs have no labels."""
    op.add_column("runs", sa.Column("labels", sa.JSON(), nullable=True))
    op.create_index(
        "runs_created",
        "runs",
        ["namespace", "hidden", "created_at", "ord", "project", "status", "deployment"],
    )
    op.create_table(
        "run_labels",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ord", sa.BigInteger(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "label", "created_at", "ord", "project"),
    )
    op.create_index("run_labels_ord", "run_labels", ["namespace", "ord"])
