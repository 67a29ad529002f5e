"""Moments that were written as text become numbers: ends of removed runs, begins of builds."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Only SQLite, which keeps whatever it is given, can have such rows."""
    if op.get_bind().dialect.name != "sqlite":
        return
    for table, column in (("runs", "completed_at"), ("deployments", "building_at")):
        op.execute(
            f"update {table} set {column} = cast(strftime('%s', {column}) as integer) * 1000000 "
            f"where typeof({column}) = 'text'"
        )
