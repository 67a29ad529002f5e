"""The reconcile of a Deployment whose build pod cannot be created, or that may reuse an image."""

import asyncio
from dataclasses import replace

import pytest

from controller.build_proof.proof import prove
from controller.deployment.build_admission import BuildAdmission
from controller.deployment.queue_view import BuildQueueView
from controller.deployment.reconcile import DeploymentReconciler
from controller.deployment.warm.pool import WarmBuilders
from controller.owner import reference
from crds import kinds
from crds.conditions import find
from kube import errors
from tests.unit.controller.memory_kube import ReconcilerTestbed

FAILED_CALL = 'failed calling webhook "sidecars.example.com": no endpoints'


def reconciler_of(testbed, config):
    admission = BuildAdmission(
        testbed.applier,
        config,
        BuildQueueView(testbed.cache, config),
        tree_of=lambda _: None,
        ready=lambda: True,
        marked_for_deletion=lambda _: frozenset(),
        deleted_images=lambda _: frozenset(),
        image_lock=asyncio.Lock(),
    )
    return DeploymentReconciler(testbed.applier, config, admission, WarmBuilders(testbed.applier, config))


@pytest.fixture
def testbed(make):
    testbed = ReconcilerTestbed()
    testbed.show(kinds.PROJECT, make.project())
    return testbed


@pytest.mark.parametrize(("started", "phase"), [({}, "Pending"), ({"buildPod": "dep-a-a1"}, "Building")])
async def test_a_build_whose_pod_a_silent_webhook_prevents_says_so(testbed, make, config, started, phase):
    testbed.show(kinds.DEPLOYMENT, make.deployment(built=False, status=started))
    error = errors.from_status(500, {"reason": "InternalError", "message": FAILED_CALL})
    testbed.kube.refused["create", kinds.POD] = error
    await reconciler_of(testbed, config).reconcile("dep-a")
    status = testbed.kube.objects["deployments", "dep-a"]["status"]
    ready, built = (find(status["conditions"], kind) for kind in ("Ready", "Built"))
    assert (status["phase"], ready["status"], ready["reason"]) == (phase, "Unknown", "PodRefused")
    assert "sidecars.example.com" in ready["message"]
    # No policy rejects the pod: the time until the webhook answers does not count as a refusal.
    assert built["status"] == "Unknown"
    assert testbed.queues.main.scheduled


async def test_a_status_that_a_silent_webhook_prevents_is_written_again(testbed, make, config):
    testbed.show(kinds.DEPLOYMENT, make.deployment(built=False))
    bodies = []

    async def patch(kind, name, body, subresource=None):
        bodies.append(body)
        raise errors.from_status(500, {"reason": "InternalError", "message": FAILED_CALL})

    testbed.kube.patch = patch
    with pytest.raises(errors.WebhookUnavailable):
        await reconciler_of(testbed, config).reconcile("dep-a")
    assert bodies and "PodRefused" not in str(bodies)


@pytest.mark.parametrize(
    ("owner", "removed", "reused"),
    [(None, (), True), ("uid-demo", (), True), ("uid-demo", ("image",), False), ("uid-earlier", (), False)],
)
async def test_no_image_that_an_earlier_project_leaves_is_reused(make, config, owner, removed, reused):
    testbed, project = ReconcilerTestbed(), make.project()
    owners = [{**reference(kinds.PROJECT, project), "uid": owner}] if owner else []
    built = make.deployment(status={"sourceKey": "key"}, metadata={"ownerReferences": owners})
    built.raw["status"]["proof"] = prove(config.token_key, "crews", built, "uid-pod", built.status)
    testbed.show(kinds.DEPLOYMENT, built)
    images = frozenset(str(built.image) for _ in removed)
    admission = replace(reconciler_of(testbed, config).admission, deleted_images=lambda _: images)
    new = make.deployment("dep-b", built=False)
    found = await admission.reusable_build(new, project, "key")
    assert (found is not None) == reused
