"""Accepted runs that a crash or an absent apiserver left without an object, or without knowing of it.

Called by `api.maintenance.loops` at start and every 30 seconds.
"""

from datetime import UTC, datetime, timedelta

import structlog

from api.store.errors import Missing
from api.store.store import Store
from api.v1.runs.create import complete
from crds.kinds import RUN
from kube import errors
from kube.client import Kube

log = structlog.get_logger()

FRESH = timedelta(seconds=15)
"""A younger row is still in the hands of the call that accepted it."""
SURE = timedelta(seconds=90)
"""After this a create that nobody answered cannot arrive any more."""


async def complete_all(store: Store, kube: Kube, accepted_before: datetime) -> None:
    """One look. Makes what is missing, deletes the objects of what was withdrawn."""
    now = datetime.now(UTC)
    withdrawn, accepted = await store.runs.unsettled(accepted_before)
    for row in accepted:
        try:
            await complete(store, kube, row, now)
        except errors.Unavailable:
            raise
        except (errors.KubeError, Missing) as error:
            log.warning("accepted run withdrawn", run=row.name, error=str(error))
            await store.runs.withdraw(row.name, now, gone=True)
    for name, created_at in withdrawn:
        found = await kube.get(RUN, name)
        if found is not None:
            await kube.delete(RUN, name, uid=found["metadata"]["uid"])
        elif now - created_at > SURE:
            await store.runs.settle(name)
