"""What a run used: its tokens and the bytes of its artifacts."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COLUMNS = ("prompt_tokens", "completion_tokens", "artifact_bytes")
WITHOUT_USAGE = "accounted AND prompt_tokens IS NULL"


def upgrade() -> None:
    """Earlier runs get theirs in batches, by `api.store.accounting`."""
    for column in COLUMNS:
        op.add_column("runs", sa.Column(column, sa.BigInteger(), nullable=True))
    op.create_index(
        "runs_without_usage",
        "runs",
        ["namespace", "ord"],
        sqlite_where=sa.text(WITHOUT_USAGE),
        postgresql_where=sa.text(WITHOUT_USAGE),
    )
