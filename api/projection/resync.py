"""Resync by list, every 15 seconds: finds changes that a watch lost or has not reported yet.

A half-open stream stays silent for 90 seconds before the client closes it, and `api.projection.list_watch`
lists everything only three times an hour, since that list is long when many runs have ended. The resync lists
Projects, Deployments and unfinished Runs. For an unfinished row whose object is not in that list it reads the
object. Called by `api.maintenance.loops`.
"""

from dataclasses import replace

from api.projection import projections
from api.projection.list_watch import apply_list
from api.store.store import Store
from crds.kinds import RUN
from crds.reasons import TERMINAL_RUN_PHASES
from crds.teams.namespaces import place_of
from kube.client import KubeClient, Listing

UNFINISHED_RUNS_SELECTOR = ",".join(f"status.phase!={phase}" for phase in sorted(TERMINAL_RUN_PHASES))


async def resync(store: Store, kube: KubeClient) -> None:
    """List and apply all kinds of the client's namespace once.

    Raises KubeError and StoreUnavailable: the caller retries.
    """
    place = place_of(kube.namespace, store.namespace)
    for projection in (projections.projects(store, place), projections.deployments(store, place)):
        await apply_list(projection, await kube.list(projection.kind))
    listing = await kube.list(RUN, fields=UNFINISHED_RUNS_SELECTOR)
    runs = projections.runs(store, place=place)

    async def check_missing(name: str, uid: str) -> None:
        manifest = await kube.get(RUN, name)

        async def indexed() -> dict[str, tuple[str, int]]:
            return {name: (uid, -1)}

        single = Listing([manifest] if manifest else [], listing.resource_version)
        await apply_list(replace(runs, indexed=indexed), single)

    indexed_runs = replace(runs, indexed=lambda: store.run_writer.live(place), delete=check_missing)
    await apply_list(indexed_runs, listing)
