"""Index of the uploads of a project."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The limits of a project's uploads read these alone."""
    op.create_index("uploads_project", "uploads", ["namespace", "project"])
