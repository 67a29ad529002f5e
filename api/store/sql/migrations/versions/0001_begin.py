"""The index as it began."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes all tables."""
    op.create_table(
        "projects",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("ord", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("active", sa.String(), nullable=True),
        sa.Column("activated_at", sa.BigInteger(), nullable=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("status", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name"),
    )
    op.create_index("projects_ord", "projects", ["namespace", "ord"])
    op.create_table(
        "removed_projects",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("removed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "uid"),
    )
    op.create_table(
        "deployments",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("project_uid", sa.String(), nullable=True),
        sa.Column("ord", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("built", sa.Boolean(), nullable=False),
        sa.Column("preview", sa.Boolean(), nullable=False),
        sa.Column("activation", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("activated_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name"),
    )
    op.create_index("deployments_project_ord", "deployments", ["namespace", "project", "ord"])
    op.create_table(
        "runs",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("uid", sa.String(), nullable=True),
        sa.Column("ord", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("project_uid", sa.String(), nullable=True),
        sa.Column("deployment", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.Column("present", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("input", sa.JSON(), nullable=False),
        sa.Column("entrypoint", sa.String(), nullable=True),
        sa.Column("timeout", sa.String(), nullable=True),
        sa.Column("cancel", sa.Boolean(), nullable=False),
        sa.Column("output", sa.JSON(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("waiting", sa.JSON(), nullable=True),
        sa.Column("terminal", sa.JSON(), nullable=True),
        sa.Column("terminal_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("namespace", "name"),
    )
    op.create_index("runs_deployment_ord", "runs", ["namespace", "hidden", "deployment", "ord"])
    op.create_index("runs_ord", "runs", ["namespace", "hidden", "ord"])
    op.create_index("runs_present", "runs", ["namespace", "present", "status"])
    op.create_index("runs_project_ord", "runs", ["namespace", "hidden", "project", "ord"])
    op.create_index("runs_project_status_ord", "runs", ["namespace", "hidden", "project", "status", "ord"])
    op.create_index("runs_status_ord", "runs", ["namespace", "hidden", "status", "ord"])
    op.create_table(
        "claims",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("run_uid", sa.String(), nullable=False),
        sa.Column("pod_uid", sa.String(), nullable=False),
        sa.Column("nonce", sa.String(), nullable=False),
        sa.Column("granted_at", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("written", sa.Boolean(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("result_written", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "run"),
    )
    op.create_index("claims_written", "claims", ["namespace", "written"])
    op.create_table(
        "artifacts",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("content_type", sa.String(), nullable=False),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("blob", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "run", "name"),
    )
    op.create_index("artifacts_version", "artifacts", ["namespace", "run", "version"])
    op.create_table(
        "uploads",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", sa.BigInteger(), nullable=True),
        sa.Column("blob", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "id"),
    )
    op.create_table(
        "api_keys",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("projects", sa.JSON(), nullable=True),
        sa.Column("plan", sa.String(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("namespace", "id"),
    )
    op.create_table(
        "idempotency",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("body_sha256", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "owner", "key"),
    )
    op.create_index("idempotency_created", "idempotency", ["namespace", "created_at"])
    op.create_table(
        "run_counts",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("deployment", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "project", "deployment", "status"),
    )
    op.create_table(
        "sequences",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name"),
    )
