"""Questions of runs to a person."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier runs have none."""
    op.create_table(
        "input_requests",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("schema", sa.JSON(), nullable=True),
        sa.Column("choices", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("answered_by", sa.String(), nullable=True),
        sa.Column("refusal", sa.String(), nullable=True),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.Column("written", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "run", "id"),
    )
    op.create_index("input_requests_written", "input_requests", ["namespace", "written"])
