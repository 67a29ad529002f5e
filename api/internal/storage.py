"""Limits of stored bytes for the calls of run pods. Called by the routes of events and artifacts."""

from api import tenant_limits
from api.internal.context import InternalContext
from api.store.logs.event_budget import EventBudget
from crds.installation_limits import InstallationLimits


async def event_budget(context: InternalContext, run: str) -> EventBudget:
    """Return what the log of a run may have: nothing more if its project's storage is used up."""
    exceeded = await project_problem(context, run, 0)
    if exceeded:
        return EventBudget(0, 0, exceeded)
    limits = await limits_of(context, run)
    notice = f"the run has reached its limit of {limits.events} events or {limits.events_bytes} bytes"
    return EventBudget(limits.events, limits.events_bytes, notice)


async def limits_of(context: InternalContext, run: str) -> InstallationLimits:
    """Return the limits of the project of a run."""
    config = context.config
    # Without such a plan, no call needs the run's project.
    project = await context.store.project_storage.project_of(run) if config.plans.has_limits else None
    return await tenant_limits.limits_of(context.store, config.plans, config.limits, project)


async def project_problem(context: InternalContext, run: str, new_bytes: int) -> str | None:
    """Return why the project of a run cannot store that many bytes more, None if it can."""
    store, config = context.store, context.config
    project = await store.project_storage.project_of(run)
    if project is None or not store.volume.limits_projects(config.plans, config.limits):
        return None
    plan, stored = await store.project_storage.of(project)
    limit = store.volume.project_bytes_limit(config.plans.of(plan), config.limits)
    if limit is None or stored.total + max(new_bytes, 1) <= limit:
        return None
    context.on_limit(tenant_limits.PROJECT_BYTES, project)
    return f"the project {project} has {stored.total} stored bytes, and its limit is {limit}"
