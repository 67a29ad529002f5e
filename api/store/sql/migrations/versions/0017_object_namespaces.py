"""The namespaces of objects that are not in the installation's own one."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """All earlier objects are in the installation's own namespace."""
    for table in ("projects", "deployments", "runs"):
        op.add_column(table, sa.Column("object_namespace", sa.String(), nullable=True))
