"""The audit log of changes, and who created what."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
CREATED = ("projects", "deployments", "runs", "api_keys")


def upgrade() -> None:
    """Of earlier objects the creator is not known."""
    for table in CREATED:
        op.add_column(table, sa.Column("created_by", sa.String(), nullable=True))
    op.create_table(
        "audit",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("actor", "remote", "method", "path")),
        *(sa.Column(name, sa.String(), nullable=True) for name in ("project", "target")),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("request_id", "previous", "hash")),
        sa.PrimaryKeyConstraint("namespace", "number"),
    )
    op.create_index("audit_project", "audit", ["namespace", "project", "number"])
    op.create_index("audit_actor", "audit", ["namespace", "actor", "number"])
