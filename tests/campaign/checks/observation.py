"""The final state of all runs from the API, and leftovers. Called by `tests.campaign.campaign`."""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any

from crds import names
from crds.kinds import DEPLOYMENT, POD, RUN
from crds.names import id_of, name_of
from tests.campaign.checks.observed import FAILED, TERMINAL, ApiRunRecord, ObservedEvent
from tests.campaign.store import verdict
from tests.campaign.store.snapshot import stores
from tests.campaign.testbed import CampaignTestbed
from tests.campaign.watcher import job_status, run_status
from tests.campaign.workload import JOB

AT_ONCE = 8
PAGE = 100
SETTLE_SECONDS = 120.0
"""Until the pods of ended runs are finished or deleted, and the API's rows agree with the objects."""


async def runs(testbed: CampaignTestbed) -> dict[str, ApiRunRecord]:
    """Every run that the API's lists or the cluster know, by its object's name."""
    listed: set[str] = set()
    page = 1
    while True:
        found = await testbed.ask("GET", testbed.runs_page(page, PAGE))
        listed |= {name_of(one["id"]) for one in found}
        if len(found) < PAGE:
            break
        page += 1
    objects = await _objects(testbed)
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> ApiRunRecord:
        async with places:
            return await run(testbed, name, objects.get(name))

    gathered = await asyncio.gather(*(one(name) for name in sorted(listed | objects.keys())))
    return {seen.run: seen for seen in gathered}


async def _objects(testbed: CampaignTestbed) -> dict[str, dict[str, Any]]:
    listed = (await testbed.kube.list(RUN)).items
    return {raw["metadata"]["name"]: raw for raw in filter(testbed.counts, listed)}


async def events(testbed: CampaignTestbed, name: str, seconds: float = 120) -> tuple[ObservedEvent, ...]:
    """What the API tells of a run's events now; it is asked for `seconds` while it is away."""
    found: list[ObservedEvent] = []
    while True:
        path = f"/v1/runs/{id_of(name)}/events?per_page={PAGE}&page={len(found) // PAGE + 1}"
        page = await testbed.ask("GET", path, seconds=seconds, Accept="application/json")
        found += [_event(one) for one in page]
        if len(page) < PAGE:
            return tuple(sorted(found, key=lambda event: event.id))


async def run(testbed: CampaignTestbed, name: str, raw: Mapping[str, Any] | None) -> ApiRunRecord:
    """One run, with its events and the hashes of its artifacts; `raw` is its object, if there is one."""
    identity = id_of(name)
    record = await testbed.ask("GET", f"/v1/runs/{identity}")
    stored_events = await events(testbed, name)
    artifacts = {}
    for stored in await testbed.ask("GET", f"/v1/runs/{identity}/artifacts"):
        data = await testbed.ask("GET", f"/v1/runs/{identity}/artifacts/{stored['name']}")
        artifacts[stored["name"]] = hashlib.sha256(data).hexdigest()
    reason = (record.get("error") or {}).get("reason", "")
    result = ((raw or {}).get("status") or {}).get("result") or {}
    stopped = result.get("outcome") == "stopped"
    return ApiRunRecord(name, record["status"], reason, stored_events, artifacts, bool(result), stopped)


def _event(raw: dict[str, Any]) -> ObservedEvent:
    return ObservedEvent(int(raw["id"]), raw["type"], raw["data"])


async def jobs(testbed: CampaignTestbed) -> dict[str, ApiRunRecord]:
    """The Jobs of the test bed, by name."""
    found = (await testbed.kube.list(JOB)).items
    return {raw["metadata"]["name"]: ApiRunRecord(raw["metadata"]["name"], job_status(raw)) for raw in found}


async def stored(
    testbed: CampaignTestbed, uploads: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the API server's store has lost, and what it would keep permanently without a need.

    `uploads` were answered for: their sha256 by their id.
    """
    if testbed.read_store is not None:
        now = await testbed.read_store()
        return tuple(dict.fromkeys((*verdict.missing_blobs(now), *verdict.missing_uploads(now, uploads)))), ()
    found = await stores(testbed.api, testbed.namespace)
    if found is None:
        return (), ()
    now, later = found
    missing = dict.fromkeys(
        (*verdict.missing_blobs(now), *verdict.missing_uploads(now, uploads), *verdict.missing_blobs(later))
    )
    return tuple(missing), tuple(verdict.leftovers(later))


async def left(
    testbed: CampaignTestbed, seconds: float = SETTLE_SECONDS, alike: bool = True
) -> tuple[str, ...]:
    """What is there that should not be, once it had `seconds` to go; `alike`: cluster and index agree."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        found = await _left(testbed, alike)
        if not found or loop.time() > end:
            return tuple(found)
        await asyncio.sleep(0.5)


async def _left(testbed: CampaignTestbed, alike: bool) -> list[str]:
    objects = await _objects(testbed)
    deployments = {raw["metadata"]["uid"] for raw in (await testbed.kube.list(DEPLOYMENT)).items}
    found = []
    for pod in filter(testbed.counts, (await testbed.kube.list(POD)).items):
        name = pod["metadata"]["name"]
        owners = {owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()}
        if any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences") or ()):
            continue
        if owners & deployments and pod["status"].get("phase") in ("Succeeded", "Failed"):
            continue  # a build pod, kept for diagnosis
        labels = pod["metadata"].get("labels") or {}
        if names.LABEL_WARM in labels and names.LABEL_RUN not in labels:
            continue  # it waits for a run
        owner = objects.get(labels[names.LABEL_RUN] if names.LABEL_WARM in labels else name)
        if owner is None or owner["metadata"]["uid"] not in owners:
            found.append(f"pod {name} of no run")
        elif run_status(owner) in TERMINAL and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            found.append(f"pod {name} lives though its run is {run_status(owner)}")
    for name, raw in objects.items() if alike else ():
        record = await testbed.ask("GET", f"/v1/runs/{id_of(name)}")
        if record["status"] != run_status(raw):
            found.append(f"{name} is {run_status(raw)} in the cluster, {record['status']} in the index")
        elif record["status"] == FAILED and record["error"] != raw["status"].get("error"):
            found.append(f"{name} has another error in the index")
    return found
