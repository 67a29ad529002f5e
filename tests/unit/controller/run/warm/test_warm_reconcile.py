"""Reconciles of the pods that wait for a run."""

import pytest

from controller.run.warm.pod import template
from controller.run.warm.reconcile import WarmReconciler
from controller.runtime.errors import Retry
from crds import kinds
from crds.names import LABEL_DEPLOYMENT, LABEL_WARM
from kube.client import Listing
from tests.unit.controller.memory_kube import ReconcilerTestbed


class Verifier:
    """A verifier that vouches for no image; `looking`: the registry has not answered yet."""

    def __init__(self, looking):
        self.looking = looking

    async def problem(self, project, deployment):
        return "not verified"

    def is_looking(self, deployment):
        return self.looking


@pytest.mark.parametrize("looking", [True, False])
async def test_waiting_pods_stay_while_the_registry_is_asked(make, config, looking):
    """After a restart of the controller, no image is verified yet."""
    testbed = ReconcilerTestbed()
    project = make.project(run={"warm": 1}, status={"activeDeployment": "dep-a"})
    testbed.show(kinds.PROJECT, project)
    active = make.deployment(phase="Active", order=1)
    testbed.show(kinds.DEPLOYMENT, active)
    fingerprint = template(project, active, None, config).fingerprint
    labels = {LABEL_DEPLOYMENT: "dep-a", LABEL_WARM: fingerprint}
    pod = testbed.show(kinds.POD, make.waiting("warm-a", "crew", labels, 60, 30))

    async def listed(*_):
        return Listing([pod], "1")

    testbed.kube.list = listed
    reconciler = WarmReconciler(testbed.applier, config, Verifier(looking))
    if looking:
        with pytest.raises(Retry):
            await reconciler.reconcile("demo")
    else:
        await reconciler.reconcile("demo")
    assert (("pods", "warm-a") in testbed.kube.objects) is looking
