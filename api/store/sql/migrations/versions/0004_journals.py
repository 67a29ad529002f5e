"""Under PostgreSQL: the journals of runs and builds, and integers of 64 bits as SQLite has them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """SQLite's journals are files beside it."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, column in (("deployments", "activation"), ("artifacts", "version")):
        op.alter_column(table, column, type_=sa.BigInteger(), existing_type=sa.Integer())
    op.create_table(
        "journals",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "kind", "name"),
    )
    op.create_table(
        "journal_records",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "kind", "name", "number"),
    )
