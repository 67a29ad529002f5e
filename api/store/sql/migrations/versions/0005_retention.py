"""Sealed logs, tombstones and notes of what is left to delete; hidden runs become tombstones."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_GONE = "hidden and not withdrawn"


def upgrade() -> None:
    """Before, a run of a removed project stayed as a hidden row, with all that it held."""
    op.create_table(
        "archives",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("blob", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("blocks", sa.JSON(), nullable=False),
        sa.Column("cleared", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "run"),
    )
    op.create_index("archives_cleared", "archives", ["namespace", "cleared"])
    op.create_table(
        "tombstones",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("uid", sa.String(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name"),
    )
    op.create_table(
        "remains",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "kind", "name"),
    )
    op.execute(
        "insert into tombstones (namespace, name, uid, ended_at) "
        f"select namespace, name, uid, coalesce(completed_at, created_at) from runs where {_GONE}"
    )
    op.execute(
        f"insert into remains (namespace, kind, name) select namespace, 'run', name from runs where {_GONE}"
    )
    op.execute(
        "delete from claims where exists (select 1 from tombstones t "
        "where t.namespace = claims.namespace and t.name = claims.run)"
    )
    op.execute(f"delete from runs where {_GONE}")
    op.add_column("runs", sa.Column("sealed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.drop_index("runs_present", "runs")
    op.create_index("runs_present", "runs", ["namespace", "present", "completed_at", "project"])
    op.create_index("runs_sealed", "runs", ["namespace", "sealed", "completed_at"])
    op.create_index("runs_project_end", "runs", ["namespace", "project", "completed_at"])
    op.create_index("uploads_expires", "uploads", ["namespace", "expires_at"])
