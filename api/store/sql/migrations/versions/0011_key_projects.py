"""Keys are bound to the uids of their projects."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_keys = sa.table(
    "api_keys",
    sa.column("namespace"),
    sa.column("id"),
    sa.column("projects", sa.JSON()),
    sa.column("project_uids", sa.JSON()),
    sa.column("created_at"),
    sa.column("revoked_at"),
)
_projects = sa.table("projects", sa.column("namespace"), sa.column("name"), sa.column("uid"))
_removed = sa.table(
    "removed_projects", sa.column("namespace"), sa.column("name"), sa.column("uid"), sa.column("removed_at")
)


def upgrade() -> None:
    """A key keeps the projects that exist; one that was deleted after the key was made stays closed to it."""
    op.add_column("api_keys", sa.Column("project_uids", sa.JSON(), nullable=True))
    connection = op.get_bind()
    current = {(row.namespace, row.name): row.uid for row in connection.execute(sa.select(_projects))}
    removed = list(connection.execute(sa.select(_removed)))
    bound = sa.select(_keys).where(_keys.c.revoked_at.is_(None), _keys.c.projects.is_not(None))
    for key in list(connection.execute(bound)):
        uids = {
            row.name: row.uid
            for row in removed
            if row.namespace == key.namespace
            and row.name in (key.projects or ())
            and row.removed_at >= key.created_at
        }
        for name in key.projects or ():
            if (key.namespace, name) in current:
                uids[name] = current[key.namespace, name]
        connection.execute(
            sa.update(_keys)
            .where(_keys.c.namespace == key.namespace, _keys.c.id == key.id)
            .values(project_uids=uids)
        )
