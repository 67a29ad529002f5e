"""Config and context of a run, which graphs of LangGraph take besides the input."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier runs have neither."""
    op.add_column("runs", sa.Column("config", sa.JSON(), nullable=True))
    op.add_column("runs", sa.Column("context", sa.JSON(), nullable=True))
