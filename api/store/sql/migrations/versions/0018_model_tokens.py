"""Tokens by model: of a run, and of a project's day."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs that are accounted already, and their days, have none."""
    op.add_column("runs", sa.Column("model_tokens", sa.JSON(), nullable=True))
    op.create_table(
        "usage_models",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("project_uid", sa.String(), nullable=False),
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "project_uid", "day", "model"),
    )
