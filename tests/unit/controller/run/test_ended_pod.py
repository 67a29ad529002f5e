"""Finished pods are deleted a while after their end, once their Run has ended."""

from dataclasses import replace
from typing import Any

import pytest

from controller.config import ControllerConfig
from controller.run.ended_pod import EndedPods, seconds_to_deletion
from controller.run.reconcile import RunReconciler
from crds import kinds
from crds.objects import Pod, Run
from tests.unit.controller.memory_kube import ReconcilerTestbed

KEY = "ended-pods/run-a/uid-run-a"
RESULT = {"result": {"outcome": "succeeded", "durationMs": 1000}}


@pytest.fixture
def testbed(make: Any) -> ReconcilerTestbed:
    found = ReconcilerTestbed()
    found.show(kinds.PROJECT, make.project(status={"activeDeployment": "dep-a"}))
    found.show(kinds.DEPLOYMENT, make.deployment(phase="Active", order=1))
    return found


@pytest.fixture
def hasty(config: ControllerConfig) -> ControllerConfig:
    """Settings by which a pod is deleted at once."""
    return replace(config, timing=replace(config.timing, run_pod_ttl=0))


def claimed(make: Any, **status: Any) -> Run:
    claim = {"podUid": "uid-run-a", "time": make.ago(5)}
    return make.run(project="demo", status={"phase": "Running", "claim": claim, **status})  # type: ignore[no-any-return]


def succeeded(make: Any, ago: float = 2) -> Pod:
    ended = make.ended(finishedAt=make.ago(ago))
    return make.pod(phase="Succeeded", containerStatuses=ended)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("ago", "left"), [(0, 120.0), (100, 20.0), (120, 0.0), (1000, 0.0)])
def test_a_finished_pod_is_kept_for_a_time_from_its_end(make: Any, ago: float, left: float) -> None:
    assert seconds_to_deletion(succeeded(make, ago), make.now, 120) == left


def test_a_pod_that_failed_without_a_container_counts_from_its_creation(make: Any) -> None:
    assert seconds_to_deletion(make.pod(phase="Failed"), make.now, 120) == 60.0


def test_a_pod_that_runs_is_deleted_or_gone_is_left_alone(make: Any) -> None:
    deleted = make.pod(phase="Failed", metadata={"deletionTimestamp": make.ago(1)})
    assert [seconds_to_deletion(pod, make.now, 0) for pod in (make.pod(), deleted, None)] == [None] * 3


@pytest.mark.parametrize("late", [False, True])
async def test_the_pod_of_an_ended_run_is_deleted(
    testbed: ReconcilerTestbed, make: Any, hasty: ControllerConfig, late: bool
) -> None:
    """Also one that finishes after the final status of its Run."""
    runs, pods = RunReconciler(testbed.applier, hasty), EndedPods(testbed.applier)
    testbed.show(kinds.POD, make.pod() if late else succeeded(make))
    testbed.show(kinds.RUN, claimed(make, **RESULT))
    await testbed.queued()
    await runs.reconcile("run-a")
    if late:
        assert KEY not in await testbed.queued()
        testbed.show(kinds.POD, succeeded(make))
        assert "runs/run-a" in await testbed.queued()
        await runs.reconcile("run-a")
    assert KEY in await testbed.queued()
    recorded = testbed.kube.objects["runs", "run-a"]
    assert recorded["status"]["phase"] == "Succeeded"
    pod = testbed.kube.objects["pods", "run-a"]
    await pods.reconcile(KEY.removeprefix("ended-pods/"))
    assert ("pods", "run-a") not in testbed.kube.objects
    # Neither its deletion nor that of a pod that is gone changes or repeats anything.
    testbed.handlers.on_delete(kinds.POD, pod)
    await testbed.queued()
    await runs.reconcile("run-a")
    await pods.reconcile(KEY.removeprefix("ended-pods/"))
    assert testbed.kube.objects["runs", "run-a"] == recorded
    assert testbed.kube.created == []


async def test_a_pod_is_kept_until_its_run_has_ended_for_long(
    testbed: ReconcilerTestbed, make: Any, config: ControllerConfig
) -> None:
    lasting = replace(config, timing=replace(config.timing, run_pod_ttl=10**9))
    testbed.show(kinds.POD, succeeded(make))
    testbed.show(kinds.RUN, claimed(make, **RESULT))
    await testbed.queued()
    scheduled = testbed.queues.main.scheduled
    await RunReconciler(testbed.applier, lasting).reconcile("run-a")
    assert KEY not in await testbed.queued()
    assert testbed.queues.main.scheduled == scheduled + 1


async def test_the_pod_of_a_run_that_is_queued_again_is_not_an_ended_one(
    testbed: ReconcilerTestbed, make: Any, hasty: ControllerConfig
) -> None:
    pod = make.pod(phase="Failed", reason="OutOfcpu", message="Node has not enough cpu")
    testbed.show(kinds.POD, pod)
    recorded = {"pod": {"name": "run-a", "uid": "uid-run-a"}, "deployment": "dep-a"}
    testbed.show(kinds.RUN, make.run(project="demo", status=recorded))
    await testbed.queued()
    await RunReconciler(testbed.applier, hasty).reconcile("run-a")
    assert testbed.kube.objects["runs", "run-a"]["status"]["phase"] == "Pending"
    assert KEY not in await testbed.queued()


async def test_a_later_pod_of_the_same_name_is_not_deleted(testbed: ReconcilerTestbed, make: Any) -> None:
    later = testbed.show(kinds.POD, make.pod(metadata={"uid": "uid-later"}))
    await EndedPods(testbed.applier).reconcile(KEY.removeprefix("ended-pods/"))
    assert testbed.kube.objects["pods", "run-a"] == later
