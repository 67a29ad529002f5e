"""The visible state of a Run or a Deployment, without the values that differ between executions.

Two scenarios that came to the same end have equal sights. Kubernetes' own Events
are no part of it: they are written on a best effort. Called by the scenarios.
"""

from collections.abc import Mapping
from typing import Any

from crds.kinds import DEPLOYMENT, EVENT, POD, PROJECT, RUN
from crds.names import id_of
from crds.objects import Deployment, Object, Pod, Project
from tests.campaign import ledger
from tests.campaign.cuts.stage import CutStage
from tests.campaign.testbed import CampaignTestbed

ClusterView = dict[str, Any]
UNSTABLE = ("timestamp", "run_id", "duration_ms", "deployment_id")


def conditions(obj: Mapping[str, Any], *plain: str) -> dict[str, str]:
    """Status and reason by type; of those in `plain` the status alone."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return {
        one["type"]: one["status"] if one["type"] in plain else f"{one['status']} {one['reason']}"
        for one in found
    }


async def run_view(testbed: CampaignTestbed, name: str) -> ClusterView:
    """A Run: object, pods, the API's answer, events, artifacts, and what the crew itself says it did."""
    status, shown = await testbed.call("GET", f"/v1/runs/{id_of(name)}")
    if status != 200:
        return {"shown": status}
    raw = await testbed.kube.get(RUN, name)
    accept = {"Accept": "application/json"}
    _, events = await testbed.call("GET", f"/v1/runs/{id_of(name)}/events?per_page=100", **accept)
    _, artifacts = await testbed.call("GET", f"/v1/runs/{id_of(name)}/artifacts")
    pods = [Pod(item) for item in (await testbed.kube.list(POD, f"crewyard.dev/run={name}")).items]
    entries = [entry for entry in testbed.ledger.entries() if entry.run == name]
    hashes = {str(entry.data["sha256"]): "AS REPORTED" for entry in entries if "sha256" in entry.data}
    return {
        "object": _object(raw, name) if raw else None,
        # One that is being deleted is gone a moment later.
        "pods": sorted((pod.name == name, pod.finished) for pod in pods if not pod.deleting),
        "shown": {key: shown["data"].get(key) for key in ("status", "project")},
        "deployment": bool(raw)
        and id_of(str(raw["status"].get("deployment"))) == shown["data"]["deployment_id"],
        "output": str(shown["data"].get("output")).replace(name, "NAME"),
        "error": (shown["data"].get("error") or {}).get("reason"),
        **_events(events["data"], {name: "NAME", **hashes}),
        "artifacts": [
            (item["name"], item["size"], item["partial"], hashes.get(item["sha256"]))
            for item in artifacts["data"]
        ],
        "starts": len({entry.token for entry in entries if entry.what == ledger.START}),
        "marks": [entry.data for entry in entries if entry.what == ledger.MARK and "said" in entry.data],
    }


def _deployment(raw: Mapping[str, Any]) -> str:
    return id_of(str(raw["status"].get("deployment")))


def _object(raw: Mapping[str, Any], name: str) -> ClusterView:
    status = raw["status"]
    claim = status.get("claim") or {}
    return {
        "phase": status.get("phase"),
        "conditions": conditions(raw),
        "pod": (status.get("pod") or {}).get("name") == name,
        "claimed by its pod": bool(claim) and claim.get("podUid") == (status.get("pod") or {}).get("uid"),
        "outcome": (status.get("result") or {}).get("outcome"),
        "owners": [owner["kind"] for owner in raw["metadata"].get("ownerReferences") or ()],
    }


def _events(events: list[Mapping[str, Any]], words: Mapping[str, str]) -> ClusterView:
    """Return the events of a run in order; positions of artifact events depend on API outages."""
    event_pairs = [(event["type"], _text(event["data"], words)) for event in events]
    last = events[-1]["type"] if events else ""
    return {
        "events": [pair for pair in event_pairs if pair[0] != "artifact"],
        "events of artifacts": sorted(pair for pair in event_pairs if pair[0] == "artifact"),
        "ids without a gap": [event["id"] for event in events] == list(range(1, len(events) + 1)),
        "last event": last,
    }


def _text(data: Mapping[str, Any], words: Mapping[str, str]) -> str:
    text = str(sorted((key, value) for key, value in data.items() if key not in UNSTABLE))
    for own, instead in words.items():
        text = text.replace(own, instead)
    return text


async def deployment_view(stage: CutStage, name: str) -> ClusterView:
    """A Deployment and its Project: who is active and why, for the object, the project and the API."""
    raw = await stage.testbed.kube.get(DEPLOYMENT, name)
    if raw is None:
        return {"object": None}
    found = Deployment(raw)
    owner = Project(await stage.testbed.kube.get(PROJECT, found.project) or {})
    listed = [Deployment(item) for item in (await stage.testbed.kube.list(DEPLOYMENT)).items]
    others = [one for one in listed if one.project == found.project]
    shown = await stage.testbed.ask("GET", f"/v1/deployments?project={found.project}&per_page=100")
    pods = (await stage.testbed.kube.list(POD, f"crewyard.dev/deployment={name}")).items
    commits = [(other.spec["source"].get("git") or {}).get("commit") for other in others]
    commit = (found.spec["source"].get("git") or {}).get("commit")
    source = owner.status.get("source") or {}
    return {
        "phase": found.phase,
        # Reused or built again: a controller that has not seen the source yet builds the same image again.
        "conditions": conditions(raw, "Built"),
        "image": found.image == stage.images.get(stage.commits.get(str(commit), "")) if commit else None,
        "is active": owner.active == name,
        "has the greatest order": found.order == max(other.order for other in others) == owner.last_order,
        "answered": found.activation == found.activation_seen,
        "is the head": (source.get("commit") == commit, source.get("order") in (None, found.order)),
        "orders are one each": len({other.order for other in others}) == len(others),
        "active ones": [other.phase for other in others].count("Active"),
        "shown": [(one["id"] == id_of(name)) for one in shown if one["status"] == "active"],
        "of this commit": commits.count(commit),
        "pods": sorted(item["metadata"]["name"].removeprefix(name) for item in pods),
        "project": conditions(owner.raw),
    }


async def event_reasons(testbed: CampaignTestbed, name: str) -> set[str]:
    """The reasons of the Kubernetes Events about an object."""
    items = (await testbed.kube.list(EVENT, fields=f"involvedObject.name={name}")).items
    ours = [item for item in items if item.get("reportingComponent") == "crewyard-controller"]
    return {str(Object(item).raw["reason"]) for item in ours}
