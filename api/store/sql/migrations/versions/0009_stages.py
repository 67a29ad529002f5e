"""Stages of builds."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier deployments have none."""
    op.add_column("deployments", sa.Column("stages", sa.JSON(), nullable=True))
