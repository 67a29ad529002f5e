"""Current tables of the index; `api.store.sql.migrations` upgrades older files.

The installation's namespace is part of every key; `object_namespace` is that of an object elsewhere. `ord`
is the order of acceptance, a unique integer, since times are not unique. `version` is the object's
resourceVersion, which grows over all objects: an older view never replaces a newer one.
"""

from sqlalchemy import BigInteger, Boolean, Column, Index, MetaData, Table, Text, false
from sqlalchemy import text as text_clause

from api.store.sql.columns import Moment, integer, json_column, text

metadata = MetaData()


def _key(name: str) -> Column[str]:
    return Column(name, text(), primary_key=True)


projects = Table(
    "projects",
    metadata,
    _key("namespace"),
    _key("name"),
    Column("uid", text(), nullable=False),
    Column("ord", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", text()),
    Column("active", text()),
    Column("activated_at", Moment),
    Column("spec", json_column(), nullable=False),
    Column("status", json_column(), nullable=False),
    # Names of notifications whose last delivery was given up.
    Column("failing_notifications", json_column()),
    # None: in the namespace of the first column.
    Column("object_namespace", text()),
    Index("projects_ord", "namespace", "ord"),
)

removed_projects = Table(
    "removed_projects",
    metadata,
    _key("namespace"),
    _key("uid"),
    Column("name", text(), nullable=False),
    Column("removed_at", Moment, nullable=False),
)

workflow_pins = Table(
    "workflow_pins",
    metadata,
    _key("namespace"),
    _key("project_uid"),
    _key("repository"),
    Column("repository_id", text(), nullable=False),
    Column("pinned_at", Moment, nullable=False),
)

deployments = Table(
    "deployments",
    metadata,
    _key("namespace"),
    _key("name"),
    Column("uid", text(), nullable=False),
    Column("project", text(), nullable=False),
    Column("project_uid", text()),
    Column("ord", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("phase", text(), nullable=False),
    Column("built", Boolean, nullable=False),
    Column("preview", Boolean, nullable=False),
    Column("activation", integer(), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", text()),
    Column("activated_at", Moment),
    Column("error", json_column()),
    Column("spec", json_column(), nullable=False),
    Column("plan", json_column(), nullable=False),
    Column("conditions", json_column(), nullable=False),
    Column("stages", json_column()),
    Column("building_at", Moment),
    Column("object_namespace", text()),
    Column("accounted", Boolean, nullable=False, default=False, server_default=false()),
    Index("deployments_project_ord", "namespace", "project", "ord"),
    Index("deployments_accounted", "namespace", "accounted"),
)

WITHOUT_USAGE = text_clause("accounted AND prompt_tokens IS NULL")
"""The condition of the index `runs_without_usage`; SQLite uses it for a query that has the same text."""

runs = Table(
    "runs",
    metadata,
    _key("namespace"),
    _key("name"),
    Column("uid", text()),
    Column("ord", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("project", text(), nullable=False),
    Column("project_uid", text()),
    Column("deployment", text()),
    Column("status", text(), nullable=False),
    Column("hidden", Boolean, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    Column("present", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", text()),
    Column("started_at", Moment),
    Column("completed_at", Moment),
    Column("duration_ms", BigInteger),
    Column("input", json_column(), nullable=False),
    Column("entrypoint", text()),
    Column("timeout", text()),
    Column("config", json_column()),
    Column("context", json_column()),
    Column("labels", json_column()),
    Column("rerun_of", text()),
    Column("traceparent", text()),
    Column("admitted_at", Moment),
    Column("cancel", Boolean, nullable=False),
    Column("output", json_column()),
    Column("error", json_column()),
    Column("waiting", json_column()),
    Column("terminal", json_column()),
    Column("terminal_id", BigInteger),
    Column("object_namespace", text()),
    Column("accounted", Boolean, nullable=False, default=False, server_default=false()),
    Column("sealed", Boolean, nullable=False, default=False, server_default=false()),
    # What the run used, since it is accounted.
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("artifact_bytes", BigInteger),
    # [prompt, completion] by model; None also for runs that an earlier version accounted.
    Column("model_tokens", json_column()),
    # `hidden` is in each index: a distant page is found in the index alone.
    Index("runs_ord", "namespace", "hidden", "ord"),
    Index("runs_project_ord", "namespace", "hidden", "project", "ord"),
    Index("runs_status_ord", "namespace", "hidden", "status", "ord"),
    Index("runs_project_status_ord", "namespace", "hidden", "project", "status", "ord"),
    Index("runs_deployment_ord", "namespace", "hidden", "deployment", "ord"),
    # Also status and deployment, which filter a page by time.
    Index("runs_created", "namespace", "hidden", "created_at", "ord", "project", "status", "deployment"),
    Index("runs_accounted", "namespace", "accounted"),
    # Runs that a version without these columns accounted; new ones never enter.
    Index(
        "runs_without_usage",
        "namespace",
        "ord",
        sqlite_where=WITHOUT_USAGE,
        postgresql_where=WITHOUT_USAGE,
    ),
    # Runs that ended long ago, to prune their object, log and record, without reading the others.
    Index("runs_present", "namespace", "present", "completed_at", "project"),
    Index("runs_sealed", "namespace", "sealed", "completed_at"),
    Index("runs_project_end", "namespace", "project", "completed_at"),
)

run_labels = Table(
    "run_labels",
    metadata,
    _key("namespace"),
    # The key and the value of a label, as `key=value`.
    _key("label"),
    # The key has all columns and the order of a page: an index alone gives the page of a label.
    Column("created_at", Moment, primary_key=True),
    Column("ord", BigInteger, primary_key=True, autoincrement=False),
    _key("project"),
    Index("run_labels_ord", "namespace", "ord"),
)

archives = Table(
    "archives",
    metadata,
    _key("namespace"),
    _key("run"),
    Column("blob", text(), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("blocks", json_column(), nullable=False),
    Column("cleared", Boolean, nullable=False),
    Index("archives_cleared", "namespace", "cleared"),
)

tombstones = Table(
    "tombstones",
    metadata,
    _key("namespace"),
    _key("name"),
    Column("uid", text()),
    Column("ended_at", Moment, nullable=False),
)

remains = Table(
    "remains",
    metadata,
    _key("namespace"),
    _key("kind"),
    _key("name"),
)

claims = Table(
    "claims",
    metadata,
    _key("namespace"),
    _key("run"),
    Column("run_uid", text(), nullable=False),
    Column("pod_uid", text(), nullable=False),
    Column("nonce", text(), nullable=False),
    Column("granted_at", Moment, nullable=False),
    Column("answer", json_column(), nullable=False),
    Column("written", Boolean, nullable=False),
    Column("result", json_column()),
    Column("result_written", Boolean, nullable=False),
    Index("claims_written", "namespace", "written"),
)

input_requests = Table(
    "input_requests",
    metadata,
    _key("namespace"),
    _key("run"),
    _key("id"),
    Column("prompt", text(), nullable=False),
    Column("schema", json_column()),
    Column("choices", json_column()),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    # {"value": …}, since the answer may be null; removed once the crew has it.
    Column("answer", json_column()),
    Column("answered_at", Moment),
    Column("answered_by", text()),
    Column("refusal", text()),
    Column("closed", Boolean, nullable=False),
    Column("written", Boolean, nullable=False),
    Index("input_requests_written", "namespace", "written"),
)

deliveries = Table(
    "deliveries",
    metadata,
    _key("namespace"),
    _key("id"),
    Column("project", text(), nullable=False),
    Column("project_uid", text(), nullable=False),
    Column("notification", text(), nullable=False),
    Column("type", text(), nullable=False),
    Column("object", text(), nullable=False),
    Column("event_time", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("status", text(), nullable=False),
    Column("attempts", integer(), nullable=False),
    Column("next_at", Moment, nullable=False),
    # A pending delivery is given up then.
    Column("expires_at", Moment, nullable=False),
    Column("completed_at", Moment),
    Column("response_status", integer()),
    Column("error", text()),
    Index("deliveries_due", "namespace", "status", "next_at"),
    Index("deliveries_project", "namespace", "project_uid", "id"),
    Index("deliveries_created", "namespace", "created_at"),
)

trace_exports = Table(
    "trace_exports",
    metadata,
    # Ended runs and builds whose spans the collector does not have yet.
    _key("namespace"),
    _key("kind"),
    _key("name"),
    Column("queued_at", Moment, nullable=False),
    Column("next_at", Moment, nullable=False),
    Index("trace_exports_due", "namespace", "next_at"),
    Index("trace_exports_queued", "namespace", "queued_at"),
)

artifacts = Table(
    "artifacts",
    metadata,
    _key("namespace"),
    _key("run"),
    _key("name"),
    Column("version", integer(), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", text(), nullable=False),
    Column("content_type", text(), nullable=False),
    Column("partial", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("blob", text(), nullable=False),
    Index("artifacts_version", "namespace", "run", "version"),
)

uploads = Table(
    "uploads",
    metadata,
    _key("namespace"),
    _key("id"),
    Column("project", text(), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", text()),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("stored_at", Moment),
    Column("blob", text(), nullable=False),
    Index("uploads_expires", "namespace", "expires_at"),
    Index("uploads_project", "namespace", "project"),
)

api_keys = Table(
    "api_keys",
    metadata,
    _key("namespace"),
    _key("id"),
    Column("hash", text(), nullable=False),
    Column("name", text(), nullable=False),
    Column("scopes", json_column(), nullable=False),
    Column("projects", json_column()),
    # uid by name of those of the projects that have existed since the key was made.
    Column("project_uids", json_column()),
    Column("plan", text()),
    Column("created_at", Moment, nullable=False),
    Column("created_by", text()),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    Column("last_used_at", Moment),
)

idempotency = Table(
    "idempotency",
    metadata,
    _key("namespace"),
    _key("owner"),
    _key("key"),
    Column("body_sha256", text(), nullable=False),
    Column("name", text(), nullable=False),
    Column("created_at", Moment, nullable=False),
    Index("idempotency_created", "namespace", "created_at"),
)

audit = Table(
    "audit",
    metadata,
    _key("namespace"),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("time", Moment, nullable=False),
    Column("actor", text(), nullable=False),
    Column("remote", text(), nullable=False),
    Column("method", text(), nullable=False),
    Column("path", text(), nullable=False),
    Column("project", text()),
    Column("target", text()),
    Column("outcome", text(), nullable=False),
    Column("code", text()),
    Column("request_id", text(), nullable=False),
    Column("previous", text(), nullable=False),
    Column("hash", text(), nullable=False),
    Index("audit_project", "namespace", "project", "number"),
    Index("audit_actor", "namespace", "actor", "number"),
)

run_counts = Table(
    "run_counts",
    metadata,
    _key("namespace"),
    _key("project"),
    _key("deployment"),
    _key("status"),
    Column("count", BigInteger, nullable=False),
)

usage_days = Table(
    "usage_days",
    metadata,
    _key("namespace"),
    _key("project_uid"),
    _key("day"),
    Column("runs", BigInteger, nullable=False),
    Column("run_ms", BigInteger, nullable=False),
    Column("build_ms", BigInteger, nullable=False),
    Column("artifact_bytes", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
)

usage_models = Table(
    "usage_models",
    metadata,
    # The part of usage_days whose model is known.
    _key("namespace"),
    _key("project_uid"),
    _key("day"),
    _key("model"),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
)

sequences = Table(
    "sequences",
    metadata,
    _key("namespace"),
    _key("name"),
    Column("value", BigInteger, nullable=False),
)

# With SQLite, journals are files; only PostgreSQL has these two tables.
journal_metadata = MetaData()

journals = Table(
    "journals",
    journal_metadata,
    _key("namespace"),
    _key("kind"),
    _key("name"),
    Column("last", BigInteger, nullable=False),
    Column("state", json_column(), nullable=False),
    Column("sealed", Boolean, nullable=False),
)

journal_records = Table(
    "journal_records",
    journal_metadata,
    _key("namespace"),
    _key("kind"),
    _key("name"),
    Column("number", BigInteger, primary_key=True),
    Column("record", Text, nullable=False),
)
