"""Pods that wait for a run or a build of a Project whose name another namespace has."""

from dataclasses import replace

import pytest

from controller.deployment.warm.pool import WarmBuilders
from controller.deployment.warm.reconcile import WarmBuilderReconciler
from controller.project_names import NamespaceProjectNames, ProjectNames
from controller.run.warm.reconcile import WarmReconciler
from crds import kinds
from crds.names import LABEL_WARM, LABEL_WARM_BUILDER
from kube.client import Listing
from tests.unit.controller.memory_kube import ReconcilerTestbed


@pytest.mark.parametrize("label", [LABEL_WARM, LABEL_WARM_BUILDER])
async def test_waiting_pods_of_a_taken_name_are_deleted(make, config, label):
    testbed = ReconcilerTestbed()
    testbed.show(kinds.PROJECT, make.project(run={"warm": 1}, build={"warm": 1}))
    waiting = testbed.show(kinds.POD, make.waiting("warm-demo-0", "crew", {label: "fingerprint"}, 60, None))

    async def listed(*_, **__):
        return Listing([waiting] if ("pods", "warm-demo-0") in testbed.kube.objects else [], "2000")

    testbed.kube.list = listed
    shared = ProjectNames(["crews", "team-a"])
    shared.see("team-a", "demo", ("2020-01-01T00:00:00Z", "uid-older"))
    applier = replace(testbed.applier, project_names=NamespaceProjectNames(shared, "crews"))
    reconciler = (
        WarmReconciler(applier, config)
        if label == LABEL_WARM
        else WarmBuilderReconciler(applier, config, WarmBuilders(applier, config))
    )
    await reconciler.reconcile("demo")
    assert ("pods", "warm-demo-0") not in testbed.kube.objects
    await reconciler.reconcile("demo")
    assert testbed.kube.created == []
