"""Ids of the repositories whose workflows used an entry of a project."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The next workflow of each repository pins its id."""
    op.create_table(
        "workflow_pins",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("project_uid", sa.String(), nullable=False),
        sa.Column("repository", sa.String(), nullable=False),
        sa.Column("repository_id", sa.String(), nullable=False),
        sa.Column("pinned_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "project_uid", "repository"),
    )
