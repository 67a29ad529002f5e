"""Limits that a project can reach: their names and values, and the record of each refusal.

Called by the routes that refuse a request for such a limit, and by the routes of usage.
"""

from collections.abc import Callable

import structlog

from api.store.store import Store
from crds.installation_limits import InstallationLimits
from crds.limits import Plans

CONCURRENT_RUNS = "concurrent_runs"
QUEUE = "queue"
DEPLOYMENT_QUEUE = "deployment_queue"
DEPLOYMENTS = "deployments_per_minute"
PROJECT_KEYS = "project_keys"
PROJECT_REQUESTS = "project_requests_per_minute"
PROJECT_BYTES = "project_bytes"
UPLOADS_BYTES = "uploads_bytes"
KEPT_UPLOAD_BYTES = "kept_upload_bytes"
"""CREWYARD_KEPT_UPLOADS."""
EVENTS = "events"
OPEN_STREAMS = "open_streams"
"""Event streams of a project's keys on one API server: at most two thirds of those that it can have."""
DELIVERIES = "deliveries_per_minute"
"""Deliveries of webhooks that have an effect."""
MONTH_BUDGET = "month_budget"
"""`spec.budget.month` of a project."""
RUN_BUDGET = "run_budget"
"""`spec.budget.run` of a project."""
COUNTED = (
    QUEUE,
    DEPLOYMENT_QUEUE,
    DEPLOYMENTS,
    PROJECT_KEYS,
    PROJECT_REQUESTS,
    PROJECT_BYTES,
    UPLOADS_BYTES,
    KEPT_UPLOAD_BYTES,
    EVENTS,
    OPEN_STREAMS,
    DELIVERIES,
    MONTH_BUDGET,
    RUN_BUDGET,
)
"""Limits whose refusals `crewyard_limit_reached_total` counts; a run above `concurrent_runs` waits."""
OnLimit = Callable[[str, str], None]
"""Called with the limit and the project that reached it."""
_log = structlog.get_logger("api")


async def limits_of(
    store: Store, plans: Plans, limits: InstallationLimits, project: str | None
) -> InstallationLimits:
    """Return the limits of a project, by the plan that it had at most 30 s ago."""
    if project is None or not plans.has_limits:
        return limits
    plan, _ = await store.project_storage.of(project)
    return plans.limits_of(plan, limits)


def record(count: Callable[[str], None], limit: str, project: str) -> None:
    """Count a refusal, and log which project it was."""
    count(limit)
    _log.info("limit_reached", limit=limit, project=project)
