"""The admission against an apiserver with scripted responses."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from controller.observability.metrics import ControllerMetrics
from controller.run.admission import NEXT_WARM_POD_SECONDS, AdmissionReconciler
from controller.run.outcome import CONTAINER
from controller.run.warm.pod import template
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from crds import kinds
from crds.names import COMPONENT_RUN, LABEL_COMPONENT, LABEL_PROJECT, LABEL_RUN, LABEL_WARM
from crds.times import format_second
from kube import errors
from tests.testbed.apiserver import serving

PODS = "/api/v1/namespaces/crews/pods"
STATUS = "/apis/crewyard.dev/v1alpha1/namespaces/crews/runs/run-a/status"
VERSION = {"resourceVersion": "900"}


class AdmissionApiserver:
    """The calls of the apiserver that the admission uses."""

    def __init__(self) -> None:
        self.pods: list[dict[str, Any]] = []
        self.refuse: tuple[int, str] | None = None
        self.refusal = "exceeded quota"
        self.conflict = False
        self.conflict_of_owner = False
        self.made: list[str] = []
        self.lists = 0
        metadata = {"name": "run-a", "uid": "uid-run-a", "generation": 1, "resourceVersion": 950}
        created = {"creationTimestamp": "2026-11-21T12:00:00Z"}
        self.run: dict[str, Any] = {
            "metadata": metadata | created,
            "spec": {"project": "demo"},
            "status": {"phase": "Pending"},
        }
        self.patches: list[dict[str, Any]] = []
        self.warm: dict[str, Any] = {}
        self.foreign = True
        """Whether another object has the name of the pod of run-a."""
        self.bound_by_another: str | None = None
        """The Run that another controller gives the waiting pod to, just before a patch of it."""

    def routes(self) -> list[web.RouteDef]:
        """The seven calls."""
        return [
            web.get(PODS, self.listed),
            web.get(PODS + "/run-a", self.one),
            web.get(PODS + "/warm-a", self.waiting),
            web.patch(PODS + "/warm-a", self.bind),
            web.post(PODS, self.create),
            web.patch(STATUS, self.patch),
            web.patch(STATUS.removesuffix("/status"), self.adopt),
        ]

    async def listed(self, request: web.Request) -> web.Response:
        self.lists += 1
        if "as=Table" not in request.headers["Accept"]:
            return web.json_response({"items": self.pods, "metadata": VERSION})
        columns = [{"name": "Ready", "format": ""}, {"name": "Name", "format": "name"}]
        rows = [{"cells": ["1/1", pod["metadata"]["name"]]} for pod in self.pods]
        return web.json_response({"columnDefinitions": columns, "rows": rows, "metadata": VERSION})

    async def one(self, _: web.Request) -> web.Response:
        if not self.foreign:
            return web.json_response({"reason": "NotFound", "message": "no such pod"}, status=404)
        foreign = {"name": "run-a", "uid": "uid-foreign", "resourceVersion": "5"}
        return web.json_response({"metadata": foreign, "spec": {}, "status": {}})

    async def waiting(self, _: web.Request) -> web.Response:
        return web.json_response(self.warm)

    async def bind(self, request: web.Request) -> web.Response:
        if self.bound_by_another is None:
            change = (await request.json())["metadata"]
            self.warm["metadata"] |= {"ownerReferences": change["ownerReferences"], "resourceVersion": "903"}
            self.warm["metadata"]["labels"] |= change["labels"]
            return web.json_response(self.warm)
        self.warm["metadata"]["labels"][LABEL_RUN] = self.bound_by_another
        self.warm["metadata"]["ownerReferences"][0] |= {"uid": f"uid-{self.bound_by_another}"}
        self.warm["metadata"]["resourceVersion"] = "902"
        if self.bound_by_another == "run-a":
            self.pods = [self.warm]
        return web.json_response({"reason": "Conflict", "message": "it has changed"}, status=409)

    async def create(self, request: web.Request) -> web.Response:
        if self.refuse is not None:
            status, reason = self.refuse
            return web.json_response({"reason": reason, "message": self.refusal}, status=status)
        body = await request.json()
        self.made.append(body["metadata"]["name"])
        made = {"uid": "uid-pod", "resourceVersion": "901", "creationTimestamp": "2026-11-21T12:00:00Z"}
        return web.json_response({**body, "metadata": {**body["metadata"], **made}}, status=201)

    async def patch(self, request: web.Request) -> web.Response:
        if self.conflict:
            return web.json_response({"reason": "Conflict", "message": "it has changed"}, status=409)
        self.patches.append((await request.json())["status"])
        return self._merged(status=self.patches[-1])

    async def adopt(self, request: web.Request) -> web.Response:
        if self.conflict_of_owner:
            return web.json_response({"reason": "Conflict", "message": "it has changed"}, status=409)
        metadata = (await request.json())["metadata"]
        return self._merged(metadata={"ownerReferences": metadata["ownerReferences"]})

    def _merged(self, **change: dict[str, Any]) -> web.Response:
        for part, fields in change.items():
            self.run[part] |= fields
        self.run["metadata"]["resourceVersion"] += 1
        version = str(self.run["metadata"]["resourceVersion"])
        return web.json_response(
            {**self.run, "metadata": self.run["metadata"] | {"resourceVersion": version}}
        )


@pytest.fixture
def cluster() -> AdmissionApiserver:
    return AdmissionApiserver()


@pytest.fixture
async def kube(cluster):
    async with serving(cluster.routes()) as opened:
        yield opened


@pytest.fixture
def ahead() -> list[float]:
    return [0.0]


@pytest.fixture
def actor(make, kube, ahead) -> Applier:
    cache, queues, metrics = ObjectCache(), Queues(lambda: time.monotonic() + ahead[0]), ControllerMetrics()
    cache.put(kinds.PROJECT, make.project(status={"activeDeployment": "dep-a"}).raw)
    cache.put(kinds.DEPLOYMENT, make.deployment().raw)
    cache.put(kinds.RUN, make.run(project="demo").raw)
    return Applier(kube, cache, EventHandlers(cache, queues), queues, Recorder(kube, metrics), metrics)


async def test_admission_creates_the_pod_and_enqueues_the_run(actor, config, cluster):
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert (cluster.made, cluster.patches) == (["run-a"], [])
    async with asyncio.timeout(120):
        assert await actor.queues.main.get() == event_map.run("run-a")
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert cluster.made == ["run-a"]


async def test_admission_visits_no_run_of_another_project(actor, config, cluster, make, monkeypatch):
    for number in range(100):
        other = make.run(f"run-{number}", status={"project": "other", "deployment": "dep-z"}, project="other")
        actor.cache.put(kinds.RUN, other.raw)
    visited = []
    monkeypatch.setattr(AdmissionReconciler, "_has_pod", lambda _, run: bool(visited.append(run.name)))
    monkeypatch.setattr(ObjectCache, "all", lambda _, kind: visited.append(kind))
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert (visited, cluster.made) == (["run-a"], ["run-a"])


async def test_run_of_a_deployment_is_admitted_before_its_project_is_recorded(actor, config, cluster, make):
    actor.cache.remove(kinds.RUN, "run-a")
    actor.cache.put(kinds.RUN, make.run("run-b", deployment="dep-a").raw)
    actor.cache.put(kinds.RUN, make.run("run-c", deployment="dep-z").raw)
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert cluster.made == ["run-b"]


async def test_existing_pod_is_cached_after_a_restart(actor, config, cluster, make):
    cluster.pods = [make.pod().raw]
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert (cluster.made, cluster.patches) == ([], [])
    assert actor.cache.get(kinds.POD, "run-a") is not None
    async with asyncio.timeout(120):
        assert await actor.queues.main.get() == event_map.run("run-a")


async def test_run_changed_while_queued_is_requeued(actor, config, cluster, make, ahead):
    cluster.pods = [make.pod(name, owner=f"uid-{name}").raw for name in ("run-x", "run-y")]
    cluster.conflict = True
    with pytest.raises(errors.KubeConflict):
        await AdmissionReconciler(actor, config).reconcile("demo")
    # What was believed of it is forgotten, so that only a look at the Run itself brings it back.
    assert actor.cache.get(kinds.RUN, "run-a") is None
    ahead[0] = 5.0
    keys = []
    async with asyncio.timeout(120):
        while event_map.run("run-a") not in keys:
            keys.append(await actor.queues.main.get())


@pytest.mark.parametrize(
    ("refuse", "reason", "limit"),
    [((403, "Forbidden"), "PodRefused", 3600), ((409, "AlreadyExists"), "PodNameTaken", 300)],
)
async def test_refused_pod_creation_fails_the_run_at_a_deadline(
    actor, config, cluster, make, refuse, reason, limit
):
    cluster.refuse = refuse
    reconciler = AdmissionReconciler(actor, config)
    await reconciler.reconcile("demo")
    (first,) = cluster.patches
    admitted = next(c for c in first["conditions"] if c["type"] == "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("Unknown", reason)

    def refused_for(seconds: float) -> None:
        since = datetime.now(UTC) - timedelta(seconds=seconds)
        actor.cache.remove(kinds.RUN, "run-a")
        conditions = [{**admitted, "lastTransitionTime": format_second(since)}]
        actor.cache.put(kinds.RUN, make.run(project="demo", status={"conditions": conditions}).raw)

    refused_for(limit - 30)
    await reconciler.reconcile("demo")
    assert cluster.patches[-1].get("phase") is None
    refused_for(limit + 1)
    await reconciler.reconcile("demo")
    ended = cluster.patches[-1]
    assert (ended["phase"], ended["error"]["reason"]) == ("Failed", "StartTimeout")
    assert "pod run-a" in ended["error"]["message"]


@pytest.mark.parametrize("conflict", [False, True])
async def test_run_that_ends_without_a_pod_belongs_to_its_project(actor, config, cluster, make, conflict):
    actor.cache.remove(kinds.DEPLOYMENT, "dep-a")
    actor.cache.put(kinds.DEPLOYMENT, make.deployment(status={"plan": {"envRequired": ["KEY"]}}).raw)
    cluster.conflict_of_owner = conflict
    with pytest.raises(errors.KubeConflict) if conflict else contextlib.nullcontext():
        await AdmissionReconciler(actor, config).reconcile("demo")
    assert cluster.patches[-1]["error"]["reason"] == "MissingVariable"
    owners = [owner["uid"] for owner in cluster.run["metadata"].get("ownerReferences", [])]
    assert owners == ([] if conflict else ["uid-demo"])
    # The Run has ended, with or without an owner.
    ends = {"result": "failed", "reason": "MissingVariable"}
    assert actor.metrics.registry.get_sample_value("crewyard_run_ends_total", ends) == 1


@pytest.mark.parametrize(
    ("refuse", "reason"),
    [((422, "Invalid"), "StartTimeout"), ((403, "Forbidden"), "PodRefused"), (None, "MissingVariable")],
)
async def test_a_run_without_a_pod_names_project_and_deployment(actor, config, cluster, make, refuse, reason):
    if refuse is None:
        actor.cache.remove(kinds.DEPLOYMENT, "dep-a")
        actor.cache.put(kinds.DEPLOYMENT, make.deployment(status={"plan": {"envRequired": ["KEY"]}}).raw)
    cluster.refuse = refuse
    await AdmissionReconciler(actor, config).reconcile("demo")
    (patch,) = cluster.patches
    assert reason in {one["reason"] for one in patch["conditions"]}
    assert (patch["project"], patch["deployment"]) == ("demo", "dep-a")


async def test_a_run_whose_pod_a_silent_webhook_prevents_says_so(actor, config, cluster):
    cluster.refuse = (500, "InternalError")
    cluster.refusal = 'Internal error occurred: failed calling webhook "sidecars.example.com": no endpoints'
    await AdmissionReconciler(actor, config).reconcile("demo")
    (patch,) = cluster.patches
    found = {one["type"]: one for one in patch["conditions"]}
    assert (found["Succeeded"]["status"], found["Succeeded"]["reason"]) == ("Unknown", "PodRefused")
    assert "sidecars.example.com" in found["Succeeded"]["message"]
    # No policy rejects the pod: the time until the webhook answers does not count as a refusal.
    assert "Admitted" not in found
    assert (patch["project"], patch["deployment"]) == ("demo", "dep-a")
    assert actor.queues.main.scheduled


async def test_run_of_an_unverified_image_waits_for_its_attestation(actor, config, cluster):
    class Verifier:
        answer: str | None = "the image r/p@sha256:ab is not verified: the registry has no provenance"

        async def problem(self, project, deployment):
            assert (project.name, deployment.name) == ("demo", "dep-a")
            return self.answer

    verifier = Verifier()
    reconciler = AdmissionReconciler(actor, config, verifier)
    await reconciler.reconcile("demo")
    assert cluster.made == []
    admitted = next(c for c in cluster.patches[-1]["conditions"] if c["type"] == "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("Unknown", "ImageNotVerified")
    assert "has no provenance" in admitted["message"]
    verifier.answer = None
    actor.cache.put(kinds.RUN, cluster.run)
    await reconciler.reconcile("demo")
    assert cluster.made == ["run-a"]


class UnverifiedImages:
    """A verifier that refuses the images of the Deployments that it names."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused

    async def problem(self, project, deployment):
        return "the image is not verified" if deployment.name in self.refused else None


async def test_a_run_of_an_unverified_image_takes_no_slot(actor, config, cluster, make):
    actor.cache.put(kinds.DEPLOYMENT, make.deployment("dep-b").raw)
    for name in ("run-b", "run-c"):
        actor.cache.put(kinds.RUN, make.run(name, project="demo", deployment="dep-b").raw)
    await AdmissionReconciler(actor, config, UnverifiedImages("dep-a")).reconcile("demo")
    assert sorted(cluster.made) == ["run-b", "run-c"]
    (refused,) = cluster.patches
    admitted = next(c for c in refused["conditions"] if c["type"] == "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("Unknown", "ImageNotVerified")


async def test_a_run_that_has_a_pod_needs_no_verified_image(actor, config, cluster, make):
    cluster.pods = [make.pod().raw]
    await AdmissionReconciler(actor, config, UnverifiedImages("dep-a")).reconcile("demo")
    assert (cluster.made, cluster.patches) == ([], [])


async def test_a_run_whose_pods_name_is_taken_gives_its_slot_away(actor, config, cluster, make, ahead):
    taken = {"type": "Admitted", "status": "Unknown", "reason": "PodNameTaken", "message": "m"}
    since = format_second(datetime.now(UTC) - timedelta(seconds=40))
    refused = {"conditions": [{**taken, "lastTransitionTime": since}]}
    actor.cache.remove(kinds.RUN, "run-a")
    for name, status in (("run-a", refused), ("run-b", None), ("run-c", None)):
        actor.cache.put(kinds.RUN, make.run(name, status=status, project="demo").raw)
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert sorted(cluster.made) == ["run-b", "run-c"]
    # It is looked at again after as long as it has waited.
    await drain(actor)
    ahead[0] = 30.0
    assert event_map.run("run-a") not in await drain(actor)
    ahead[0] = 42.0
    assert event_map.run("run-a") in await drain(actor)
    # Its pod's name is free.
    cluster.foreign = False
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert cluster.made[2:] == ["run-a"]


async def test_the_slot_of_a_taken_name_is_given_away_immediately(actor, config, cluster, make):
    cluster.refuse = (409, "AlreadyExists")
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert event_map.admission("demo") in await drain(actor)


async def drain(actor) -> list[object]:
    """Take the keys that are ready."""
    actor.queues.main.oldest_ready()
    keys = []
    while actor.queues.main.depth:
        keys.append(await actor.queues.main.get())
        actor.queues.main.done(keys[-1])
    return keys


async def test_pods_of_other_runs_are_counted_by_name(actor, config, cluster, make):
    cluster.pods = [make.pod("run-x", owner="uid-run-x").raw]
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert (cluster.made, cluster.lists) == (["run-a"], 1)
    assert actor.cache.get(kinds.POD, "run-x") is None


@pytest.fixture
def waiting_pod(actor, config, cluster, make):
    """A pod of the active deployment that waits for a run."""
    actor.cache.remove(kinds.PROJECT, "demo")
    project = make.project(plan="pro", run={"warm": 1}, status={"activeDeployment": "dep-a"})
    actor.cache.put(kinds.PROJECT, project.raw)
    now = format_second(datetime.now(UTC))
    labels = {
        LABEL_COMPONENT: COMPONENT_RUN,
        LABEL_PROJECT: "demo",
        LABEL_WARM: template(project, make.deployment(), None, config).fingerprint,
    }
    metadata = {"labels": labels, "creationTimestamp": now}
    running = [{"name": CONTAINER, "state": {"running": {"startedAt": now}}}]
    cluster.warm = make.pod(
        "warm-a", owner="uid-demo", metadata=metadata, phase="Running", containerStatuses=running
    ).raw
    actor.cache.put(kinds.POD, cluster.warm)


@pytest.mark.parametrize(("bound_by_another", "made"), [(None, []), ("run-a", []), ("run-b", ["run-a"])])
async def test_a_run_that_another_controller_gave_a_pod_gets_no_second(
    actor, config, cluster, waiting_pod, bound_by_another, made
):
    cluster.bound_by_another = bound_by_another
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert (cluster.made, cluster.patches) == (made, [])
    assert cluster.warm["metadata"]["labels"][LABEL_RUN] == (bound_by_another or "run-a")


async def test_next_waiting_pod_starts_a_second_after_a_binding(actor, ahead, config, cluster, waiting_pod):
    await AdmissionReconciler(actor, config).reconcile("demo")
    assert await actor.queues.main.get() == event_map.run("run-a")
    assert actor.queues.main.depth == 0
    ahead[0] = NEXT_WARM_POD_SECONDS + 0.1
    assert await actor.queues.main.get() == event_map.warm("demo")


async def test_unchanged_queue_is_not_written_again(actor, config, cluster, make):
    cluster.pods = [make.pod(name, owner=f"uid-{name}").raw for name in ("run-x", "run-y")]
    reconciler = AdmissionReconciler(actor, config)
    await reconciler.reconcile("demo")
    await reconciler.reconcile("demo")
    assert (cluster.made, len(cluster.patches), cluster.lists) == ([], 1, 2)
