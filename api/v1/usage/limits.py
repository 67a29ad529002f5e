"""How much of each of its limits a project uses now. Called by the route of usage."""

from api import tenant_limits
from api.services import ApiServices
from api.store.index.projects import ProjectRow
from api.v1.usage.view import LimitUse


async def limits_of(services: ApiServices, project: ProjectRow) -> list[LimitUse]:
    """Return the limits of a project. Raises StoreUnavailable."""
    store, config, name = services.store, services.config, project.name
    plan_name = project.as_object().plan
    plan, limits = config.plans.of(plan_name), config.limits_of(plan_name)
    running = (await store.runs.page(0, 0, project=name, statuses=["running"])).total
    queued = (await store.runs.page(0, 0, project=name, statuses=["pending"])).total
    building = (await store.deployments.page(name, 0, 0, "pending")).total
    keys = sum(key.is_bound_to(name) for key in await store.keys.all())
    deployments = await services.limiter.peek(f"deployments:{name}", plan.deployments_of_project)
    requests = await services.limiter.peek(f"project:{name}", plan.requests_of_project)
    _, stored = await store.project_storage.of(name)
    return [
        LimitUse(tenant_limits.CONCURRENT_RUNS, running, plan.concurrent_runs),
        LimitUse(tenant_limits.QUEUE, queued, limits.queue),
        LimitUse(tenant_limits.DEPLOYMENT_QUEUE, building, limits.deployment_queue),
        LimitUse(
            tenant_limits.DEPLOYMENTS,
            plan.deployments_of_project - deployments.remaining,
            plan.deployments_of_project,
        ),
        LimitUse(
            tenant_limits.PROJECT_REQUESTS,
            plan.requests_of_project - requests.remaining,
            plan.requests_of_project,
        ),
        LimitUse(tenant_limits.PROJECT_KEYS, keys, limits.project_keys),
        LimitUse(
            tenant_limits.PROJECT_BYTES, stored.total, store.volume.project_bytes_limit(plan, config.limits)
        ),
        LimitUse(tenant_limits.KEPT_UPLOAD_BYTES, stored.uploads, config.kept_uploads),
    ]
