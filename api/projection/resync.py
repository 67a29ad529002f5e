"""The truth by list, every 15 seconds: what a watch lost, or is silent about, is found here soon.

A stream that is half open stays silent for a minute and a half before anybody gives it up, and the full list
of `api.projection.list_watch` comes three times an hour: it is long where many runs have ended. Here Projects and
Deployments are listed, and the Runs that have not ended; a row that has not ended although its object is not
among those is looked at by itself. Called by `api.maintenance.loops`.
"""

from dataclasses import replace

from api.projection import projections
from api.projection.list_watch import level
from api.store.store import Store
from crds.kinds import RUN
from crds.reasons import RUN_ENDS
from kube.client import Kube, Listing

UNFINISHED = ",".join(f"status.phase!={phase}" for phase in sorted(RUN_ENDS))


async def look(store: Store, kube: Kube) -> None:
    """One look. Raises KubeError and StoreUnavailable: then it is done again."""
    for projection in (projections.projects(store), projections.deployments(store)):
        await level(projection, await kube.list(projection.kind))
    listing = await kube.list(RUN, fields=UNFINISHED)
    runs = projections.runs(store)

    async def absent(name: str, uid: str) -> None:
        found = await kube.get(RUN, name)

        async def believed() -> dict[str, tuple[str, int]]:
            return {name: (uid, -1)}

        alone = Listing([found] if found else [], listing.resource_version)
        await level(replace(runs, known=believed), alone)

    await level(replace(runs, known=store.record.live, gone=absent), listing)
