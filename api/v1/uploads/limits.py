"""Limits of the stored bytes of a project, for one upload more.

Called by the routes of uploads and deployments.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from api import errors, tenant_limits
from api.routing.endpoint import EndpointCall
from api.store.errors import PROJECT_OWNER, UploadQuotaExceeded


async def check_storage(call: EndpointCall, project: str, size: int) -> None:
    """Raise a 429 if the project may not store so many bytes more."""
    config, store = call.services.config, call.services.store
    if not store.volume.limits_projects(config.plans, config.limits):
        return
    plan, stored = await store.project_storage.of(project)
    limit = store.volume.project_bytes_limit(config.plans.of(plan), config.limits)
    if limit is not None and stored.total + size > limit:
        call.services.metrics.limit_reached(tenant_limits.PROJECT_BYTES, project)
        raise errors.storage_full(project, stored.total, limit)


@contextmanager
def counting_refusals(call: EndpointCall, project: str) -> Iterator[None]:
    """Count an upload that the block refuses because of the bytes of other uploads."""
    try:
        yield
    except UploadQuotaExceeded as error:
        of_project = error.owner == PROJECT_OWNER
        limit_name = tenant_limits.KEPT_UPLOAD_BYTES if of_project else tenant_limits.UPLOADS_BYTES
        call.services.metrics.limit_reached(limit_name, project)
        raise
