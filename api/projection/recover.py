"""Recovery of accepted runs whose object a crash or apiserver outage left uncreated or unrecorded.

Called by `api.maintenance.loops` at start and every 30 seconds.
"""

from datetime import UTC, datetime, timedelta

import structlog

from api.projection.refused_namespaces import RefusedNamespaces
from api.store.errors import Missing
from api.store.store import Store
from api.v1.runs.create import complete
from crds.kinds import RUN
from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()

RECOVER_AFTER = timedelta(seconds=15)
"""The request that accepted a younger row may still be creating its object."""
LATE_CREATE_WINDOW = timedelta(seconds=90)
"""After this time an unanswered create can no longer reach the apiserver."""


async def recover_all(
    store: Store, kube: KubeClient, accepted_before: datetime, claims_not_before: datetime | None = None
) -> None:
    """Create missing objects of accepted runs and delete the objects of withdrawn runs, once.

    After a restore of the index (`claims_not_before`) the object of an older run is not created again.
    """
    now = datetime.now(UTC)
    withdrawn, accepted = await store.runs.unsettled(accepted_before)
    for row in accepted:
        try:
            await complete(store, kube, row, now, claims_not_before=claims_not_before)
        except errors.KubeUnavailable:
            raise
        except (errors.KubeError, Missing) as error:
            log.warning("accepted run not created", run=row.name, error=str(error))
    refused = RefusedNamespaces()
    for name, created_at, namespace in withdrawn:
        with refused.skip(kube, namespace, name):
            manifest = await kube.at(namespace).get(RUN, name)
            if manifest is not None:
                await kube.at(namespace).delete(RUN, name, uid=manifest["metadata"]["uid"])
            elif now - created_at > LATE_CREATE_WINDOW:
                await store.runs.mark_object_absent(name)
