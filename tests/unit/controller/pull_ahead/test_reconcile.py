"""Reconciles of the nodes and pull pods: what they read and write, and what starts them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controller.pull_ahead.reconcile import PullAheadReconciler
from controller.run.reconcile import RunReconciler
from controller.runtime import event_map
from crds import kinds
from crds.names import COMPONENT_RUN, LABEL_COMPONENT, LABEL_DEPLOYMENT, LABEL_PROJECT, LABEL_RUN
from crds.objects import Object, Project
from crds.secrets.use import SecretUse
from crds.times import format_time
from kube import errors
from kube.client import Listing
from tests.unit.controller.memory_kube import ReconcilerTestbed


@pytest.fixture
def testbed():
    return ReconcilerTestbed()


@pytest.fixture
def on(config):
    return replace(config, pull_ahead=True)


def run_pod(make, component=COMPONENT_RUN, name="run-a", project="demo", node="node-2"):
    labels = {LABEL_RUN: name, LABEL_PROJECT: project, LABEL_DEPLOYMENT: "dep-a", LABEL_COMPONENT: component}
    return make.pod(name, owner=f"uid-{name}", metadata={"labels": labels}, spec={"nodeName": node})


def pull_pod(make, **status):
    labels = {LABEL_PROJECT: "demo", LABEL_DEPLOYMENT: "dep-b", LABEL_COMPONENT: event_map.COMPONENT_PULL}
    return make.pod("pull-1", owner="uid-dep-b", metadata={"labels": labels}, **status)


def activated(testbed, make, **record):
    """Show a Project whose dep-b was activated just now."""
    status = {"activeDeployment": "dep-b", "activatedAt": format_time(datetime.now(UTC))}
    testbed.show(kinds.PROJECT, make.project(status={**status, "pullAhead": {"nodes": ["node-1"], **record}}))
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-b"))
    return status["activatedAt"]


def record(testbed):
    return testbed.kube.objects["projects", "demo"]["status"].get("pullAhead")


def events(testbed):
    return testbed.applier.recorder._queue.qsize()


async def test_an_activation_creates_the_pods_and_is_recorded(testbed, make, on):
    at = activated(testbed, make)
    testbed.show(kinds.POD, run_pod(make))
    testbed.show(kinds.POD, run_pod(make, name="run-b", project="other", node="node-3"))
    testbed.show(kinds.POD, run_pod(make, "other", name="run-c", node="node-4"))
    assert "pull-ahead/demo" in await testbed.queued()
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert len(testbed.kube.created) == 2
    assert record(testbed) == {"nodes": ["node-2", "node-1"], "activatedAt": at}
    # The record and the pods' first events start no reconcile of it, and none of anything else.
    assert await testbed.queued() <= {"schedules/demo"}
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert len(testbed.kube.created) == 2


class Refusal:
    """A verifier that refuses each image."""

    async def problem(self, project, deployment):
        return "not verified"


async def test_an_image_that_is_not_verified_is_not_pulled(testbed, make, on):
    activated(testbed, make)
    await PullAheadReconciler(testbed.applier, on, Refusal()).reconcile("demo")
    assert testbed.kube.created == [] and "activatedAt" not in record(testbed)


@pytest.mark.parametrize(("labels", "pods"), [({}, 0), ({"crewyard.dev/project": "demo"}, 1)])
async def test_an_image_is_pulled_only_with_a_secret_that_allows_it(testbed, make, on, labels, pods):
    activated(testbed, make)
    secrets = {"imagePullSecrets": [{"name": "pull"}]}
    testbed.show(
        kinds.PROJECT, make.project(status=testbed.kube.objects["projects", "demo"]["status"], pod=secrets)
    )
    testbed.kube.put(kinds.SECRET, Object({"metadata": {"name": "pull", "labels": labels}}))
    await PullAheadReconciler(testbed.applier, replace(on, secret_use=SecretUse.LABELLED)).reconcile("demo")
    assert len(testbed.kube.created) == pods


@pytest.mark.parametrize("change", [{"built": False}, {"metadata": {"deletionTimestamp": "now"}}])
async def test_a_deployment_without_an_image_is_not_pulled(testbed, make, on, change):
    activated(testbed, make)
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-b", **change))
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert testbed.kube.created == []


@pytest.mark.parametrize("error", [errors.QuotaExceeded, errors.Invalid])
async def test_a_refused_pod_is_an_event_and_not_tried_again(testbed, make, on, error):
    at = activated(testbed, make)
    testbed.kube.refused["create", kinds.POD] = error(403, "Forbidden", "exceeded quota: pods")
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert record(testbed) == {"nodes": ["node-1"], "activatedAt": at}
    assert events(testbed) == 1
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert events(testbed) == 1


async def test_an_ended_pod_is_deleted_after_a_restart_too(testbed, make, on, config):
    """No pod is cached, and the kube-apiserver is asked for them; with the setting off as well."""
    for settings in (on, config):
        at = activated(testbed, make)
        activated(testbed, make, activatedAt=at)
        pod = testbed.kube.put(kinds.POD, pull_pod(make, phase="Succeeded"))
        listed = []

        async def pods(kind, labels="", pod=pod, listed=listed):
            listed.append(labels)
            return Listing([pod], "1")

        testbed.kube.list = pods
        await PullAheadReconciler(testbed.applier, settings).reconcile("demo")
        assert listed == ["crewyard.dev/project=demo,app.kubernetes.io/component=pull"]
        assert ("pods", "pull-1") not in testbed.kube.objects


async def test_a_project_at_rest_costs_no_call(testbed, make, on):
    status = {"activeDeployment": "dep-b", "activatedAt": "2026-01-01T00:00:00Z"}
    testbed.show(kinds.PROJECT, make.project(status={**status, "pullAhead": {"nodes": ["node-1"]}}))
    testbed.kube.refused["get", kinds.DEPLOYMENT] = errors.KubeUnavailable(503, "Away", "no call")

    async def pods(kind, labels="", fields=""):
        raise AssertionError("no list was expected")

    testbed.kube.list = pods
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert record(testbed) == {"nodes": ["node-1"]}


async def test_a_deleted_project_needs_no_look(testbed, make, on):
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    activated(testbed, make)
    deleting = testbed.kube.objects["projects", "demo"]
    deleting["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    testbed.show(kinds.PROJECT, Project(deleting))
    await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert testbed.kube.created == []


async def test_a_refused_record_is_an_error(testbed, make, on, config):
    """Without a pod to create there is nothing to give up; with the setting off, nothing is recorded."""
    status = {"activeDeployment": "dep-b", "activatedAt": "2026-01-01T00:00:00Z"}
    testbed.show(kinds.PROJECT, make.project(status={**status, "pullAhead": {"nodes": ["node-1"]}}))
    testbed.show(kinds.POD, run_pod(make))

    calls = []

    async def patch(kind, name, body, subresource=None):
        calls.append(name)
        raise errors.KubeForbidden(403, "Forbidden", "the role lacks projects/status")

    testbed.kube.patch = patch
    await PullAheadReconciler(testbed.applier, config).reconcile("demo")
    with pytest.raises(errors.KubeForbidden):
        await PullAheadReconciler(testbed.applier, on).reconcile("demo")
    assert (calls, events(testbed)) == (["demo"], 0)


@pytest.mark.parametrize(("setting", "nodes", "expected"), [
    (True, ["node-1"], True), (True, ["node-2"], False), (False, ["node-1"], False),
])  # fmt: skip
async def test_a_run_on_another_node_has_it_recorded(testbed, make, on, setting, nodes, expected):
    config = replace(on, pull_ahead=setting)
    testbed.show(kinds.PROJECT, make.project(status={"pullAhead": {"nodes": nodes}}))
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-a"))
    testbed.show(kinds.RUN, make.run(project="demo", deployment="dep-a"))
    testbed.show(kinds.POD, run_pod(make))
    await testbed.queued()
    await RunReconciler(testbed.applier, config).reconcile("run-a")
    assert ("pull-ahead/demo" in await testbed.queued()) == expected
    if expected:
        await PullAheadReconciler(testbed.applier, config).reconcile("demo")
        assert record(testbed)["nodes"] == ["node-2", "node-1"]


@pytest.mark.parametrize(
    ("phase", "deleted", "expected"),
    [("Running", False, False), ("Failed", False, True), ("Running", True, True)],
)
def test_only_an_ended_pod_is_looked_at(testbed, make, phase, deleted, expected):
    """A list of unfinished pods has it no longer, as if it were deleted."""
    keys = set(event_map.keys_of(kinds.POD, pull_pod(make, phase=phase).raw, testbed.cache, deleted))
    assert keys == ({event_map.pull_ahead("demo")} if expected else set())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"activeDeployment": "dep-a", "pullAhead": {"nodes": ["node-1"]}}, True),
        ({"activeDeployment": "dep-a"}, False),
        ({"pullAhead": {"nodes": ["node-1"]}}, False),
    ],
)
def test_a_project_that_has_not_run_is_not_looked_at(testbed, make, status, expected):
    keys = set(event_map.keys_of(kinds.PROJECT, make.project(status=status).raw, testbed.cache))
    assert (event_map.pull_ahead("demo") in keys) == expected
