"""The run that a run repeats."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier runs repeat none."""
    op.add_column("runs", sa.Column("rerun_of", sa.String(), nullable=True))
