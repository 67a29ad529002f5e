"""Reconciles of Runs that read objects before their events arrive, and the count of ends."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.run.admission import AdmissionReconciler
from controller.run.reconcile import RunReconciler
from crds import kinds
from crds.times import format_time
from kube import errors
from tests.unit.controller.memory_kube import ReconcilerTestbed


@pytest.fixture
def testbed() -> ReconcilerTestbed:
    return ReconcilerTestbed()


async def test_a_deployment_that_a_run_reads_before_its_event_is_built(testbed, make, config):
    testbed.show(kinds.PROJECT, make.project())
    deployment = testbed.kube.put(kinds.DEPLOYMENT, make.deployment(built=False, phase="Pending"))
    testbed.show(kinds.RUN, make.run(deployment="dep-a"))
    await testbed.queued()
    await RunReconciler(testbed.applier, config).reconcile("run-a")
    queued = await testbed.queued()
    testbed.handlers.on_change(kinds.DEPLOYMENT, deployment)
    assert "deployments/dep-a" in queued | await testbed.queued()


async def test_changes_that_a_run_reads_before_their_events_are_reconciled(testbed, make, config):
    active = {"activeDeployment": "dep-b"}
    testbed.show(kinds.PROJECT, make.project(status=active))
    testbed.show(kinds.DEPLOYMENT, make.deployment(phase="Superseded", order=1))
    testbed.show(kinds.RUN, make.run(deployment="dep-a", project="demo", cancel=True))
    await testbed.queued()
    testbed.kube.put(kinds.DEPLOYMENT, make.deployment(phase="Superseded", order=1, activation=1))
    schedules = [{"name": "nightly", "cron": "@daily"}]
    testbed.kube.put(
        kinds.PROJECT, make.project(status=active, schedules=schedules, metadata={"generation": 2})
    )
    await RunReconciler(testbed.applier, config).reconcile("run-a")
    assert testbed.kube.objects["runs", "run-a"]["status"]["phase"] == "Canceled"
    assert {"deployments/dep-a", "schedules/demo"} <= await testbed.queued()


async def test_a_project_that_a_run_finds_deleted_is_reconciled_as_deleted(testbed, make, config):
    testbed.show(kinds.PROJECT, make.project())
    testbed.show(kinds.DEPLOYMENT, make.deployment(phase="Active", order=1))
    testbed.show(kinds.RUN, make.run(deployment="dep-a", project="demo", cancel=True))
    await testbed.queued()
    del testbed.kube.objects["projects", "demo"]
    await RunReconciler(testbed.applier, config).reconcile("run-a")
    assert "sources/demo" in await testbed.queued()


def waiting(
    testbed: ReconcilerTestbed, make: Any, since: str | None = None, reason: str = "PodRefused"
) -> None:
    """Show a Run that gets its pod next; `since`: the time at which its pod was first refused."""
    testbed.show(kinds.PROJECT, make.project(status={"activeDeployment": "dep-a"}))
    testbed.show(kinds.DEPLOYMENT, make.deployment(phase="Active", order=1))
    refused = {"type": "Admitted", "status": "Unknown", "reason": reason, "message": "m"}
    conditions = [{**refused, "lastTransitionTime": since}] if since else []
    testbed.show(kinds.RUN, make.run(project="demo", status={"conditions": conditions}))


async def test_a_run_that_the_admission_ends_is_counted(testbed, make, config):
    waiting(testbed, make, since="2020-01-01T00:00:00Z")
    testbed.kube.refused["create", kinds.POD] = errors.QuotaExceeded(403, "Forbidden", "exceeded quota: pods")
    await AdmissionReconciler(testbed.applier, config).reconcile("demo")
    ended = testbed.kube.objects["runs", "run-a"]["status"]
    assert (ended["phase"], ended["error"]["reason"]) == ("Failed", "StartTimeout")
    await RunReconciler(testbed.applier, config).reconcile("run-a")
    assert testbed.sample("crewyard_run_ends_total", result="failed", reason="StartTimeout") == 1
    assert testbed.sample("crewyard_run_duration_seconds_count", result="failed") == 1


async def refuse(testbed: ReconcilerTestbed, config: Any, error: errors.KubeError) -> tuple[str, ...]:
    """Let the admission try to create a pod; return the Run's phase and its condition Admitted."""
    testbed.kube.refused["create", kinds.POD] = error
    await AdmissionReconciler(testbed.applier, config).reconcile("demo")
    found = testbed.kube.objects["runs", "run-a"]["status"]
    (admitted,) = [one for one in found["conditions"] if one["type"] == "Admitted"]
    return found["phase"], admitted["status"], admitted["reason"], admitted["lastTransitionTime"][:4]


QUOTA = errors.QuotaExceeded(403, "Forbidden", "exceeded quota: pods")


async def test_a_refusal_for_another_reason_has_its_own_time_limit(testbed, make, config):
    waiting(testbed, make, since="2020-01-01T00:00:00Z", reason="ImageNotVerified")
    phase, admitted, reason, since = await refuse(testbed, config, QUOTA)
    assert (phase, admitted, reason) == ("Pending", "Unknown", "PodRefused") and since != "2020"
    assert testbed.applier.recorder._queue.qsize() == 1


async def test_time_under_a_webhook_does_not_count_for_a_quota(testbed, make, config):
    waiting(testbed, make, since="2020-01-01T00:00:00Z")
    await refuse(testbed, config, errors.WebhookUnavailable(500, "InternalError", "failed calling webhook"))
    phase, admitted, _, since = await refuse(testbed, config, QUOTA)
    assert (phase, admitted) == ("Pending", "Unknown") and since != "2020"


async def test_a_conflict_after_the_final_status_counts_once_and_adopts(testbed, make, config):
    testbed.show(kinds.PROJECT, make.project(status={"activeDeployment": "dep-a"}))
    testbed.show(kinds.DEPLOYMENT, make.deployment(phase="Active", order=1))
    claim = {"podUid": "pod-uid", "time": "2026-11-21T12:00:00Z"}
    result = {"outcome": "succeeded", "durationMs": 1000}
    run = make.run(project="demo", status={"claim": claim, "result": result})
    testbed.show(kinds.RUN, run)
    write = testbed.kube.patch

    async def patch(kind, name, body, subresource=None):
        if "ownerReferences" in body["metadata"]:
            raise errors.KubeConflict(409, "Conflict", "the object has been modified")
        return await write(kind, name, body, subresource)

    testbed.kube.patch = patch
    with pytest.raises(errors.KubeConflict):
        await RunReconciler(testbed.applier, config).reconcile("run-a")
    assert testbed.kube.objects["runs", "run-a"]["status"]["phase"] == "Succeeded"
    testbed.kube.patch = write
    await RunReconciler(testbed.applier, config).reconcile("run-a")
    assert testbed.sample("crewyard_run_duration_seconds_count", result="succeeded") == 1
    (owner,) = testbed.kube.objects["runs", "run-a"]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Project", "uid-demo")


async def test_a_run_past_its_deadline_has_its_reason_before_its_pod_goes(testbed, make, config):
    """A controller that ends between the two writes must not leave a Run whose pod is just gone."""
    testbed.show(kinds.PROJECT, make.project(status={"activeDeployment": "dep-a"}))
    testbed.show(kinds.DEPLOYMENT, make.deployment(phase="Active", order=1))
    claim = {"podUid": "uid-run-a", "time": "2020-01-01T00:00:00Z"}
    testbed.show(kinds.RUN, make.run(project="demo", status={"claim": claim}))
    testbed.show(kinds.POD, make.pod(spec={"activeDeadlineSeconds": 900}))
    delete = testbed.kube.delete

    async def unavailable(*_: object, **__: object) -> bool:
        raise errors.KubeUnavailable(503, "ServiceUnavailable", "the apiserver is shutting down")

    testbed.kube.delete = unavailable
    with pytest.raises(errors.KubeUnavailable):
        await RunReconciler(testbed.applier, config).reconcile("run-a")
    ended = testbed.kube.objects["runs", "run-a"]["status"]
    assert (ended["phase"], ended["error"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert ("pods", "run-a") in testbed.kube.objects
    testbed.kube.delete = delete
    await RunReconciler(testbed.applier, config).reconcile("run-a")
    assert ("pods", "run-a") not in testbed.kube.objects


@pytest.mark.parametrize("seconds_ago", [-30, 61])
async def test_a_pod_that_outlives_its_run_is_deleted_by_force(testbed, make, config, seconds_ago):
    """Its node does not respond, and the Run was deleted: the pod would hold a slot of the plan."""
    deletion = format_time(datetime.now(UTC) - timedelta(seconds=seconds_ago))
    testbed.show(kinds.POD, make.pod(metadata={"deletionTimestamp": deletion}))
    testbed.show(kinds.POD, make.pod("run-b", "uid-run-b"))
    deleted = []

    async def delete(kind, name, uid, resource_version, grace_seconds):
        deleted.append((kind, name, uid, grace_seconds))
        return True

    testbed.kube.delete = delete
    for run in ("run-a", "run-b"):
        await RunReconciler(testbed.applier, config).reconcile(run)
    due = seconds_ago > 60
    assert deleted == ([(kinds.POD, "run-a", "uid-run-a", 0)] if due else [])
    assert testbed.queues.main.scheduled == (0 if due else 1)


DENIAL = 'admission webhook "validate.example.com" denied the request: label team is required'
POLICY = "ValidatingAdmissionPolicy 'team' with binding 'team' denied request: label team is required"


@pytest.mark.parametrize(
    ("code", "body"),
    [
        # A webhook that names neither code nor reason.
        (400, {"message": DENIAL}),
        (403, {"message": DENIAL}),
        (422, {"reason": "Invalid", "message": POLICY}),
    ],
)
async def test_a_pod_that_an_admission_policy_denies_is_tried_again(testbed, make, config, code, body):
    waiting(testbed, make)
    testbed.kube.refused["create", kinds.POD] = errors.from_status(code, body)
    await AdmissionReconciler(testbed.applier, config).reconcile("demo")
    status = testbed.kube.objects["runs", "run-a"]["status"]
    (admitted,) = [found for found in status["conditions"] if found["type"] == "Admitted"]
    assert (status["phase"], admitted["status"], admitted["reason"]) == ("Pending", "Unknown", "PodRefused")
    assert "label team is required" in admitted["message"]
