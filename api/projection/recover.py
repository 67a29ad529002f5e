"""Recovery of accepted runs whose object a crash or apiserver outage left uncreated or unrecorded.

Called by `api.maintenance.loops` at start and every 30 seconds.
"""

from datetime import UTC, datetime, timedelta

import structlog

from api.projection.refused_namespaces import RefusedNamespaces
from api.store.errors import Missing
from api.store.store import Store
from api.v1.runs.create import ensure_object
from crds.kinds import RUN
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()

RECOVER_AFTER = timedelta(seconds=15)
"""The request that accepted a younger row may still be creating its object."""
LATE_CREATE_WINDOW = timedelta(seconds=90)
"""After this time an unanswered create can no longer reach the apiserver."""


async def recover_all(store: Store, kube: KubeClient, accepted_before: datetime) -> None:
    """Create missing objects of accepted runs and delete the objects of withdrawn runs, once."""
    now = datetime.now(UTC)
    withdrawn, accepted = await store.runs.unsettled(accepted_before)
    for row in accepted:
        try:
            await ensure_object(store, kube, row, now)
        except errors.KubeUnavailable:
            raise
        except (errors.KubeError, Missing) as error:
            log.warning("accepted run withdrawn", run=row.name, error=str(error))
            await store.runs.withdraw(row.name, now, object_absent=True)
    refused = RefusedNamespaces()
    for name, created_at, namespace in withdrawn:
        with refused.skip(kube, namespace, name):
            manifest = await kube.at(namespace).get(RUN, name)
            if manifest is not None:
                await kube.at(namespace).delete(RUN, name, uid=manifest["metadata"]["uid"])
            elif now - created_at > LATE_CREATE_WINDOW:
                await store.runs.mark_object_absent(name)
