"""A Project that kubectl wrote gets pods and egress within the ceilings, and its condition says so."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controller.pods.run_egress import EgressTarget
from crds import kinds
from crds.conditions import find
from tests.cluster.controller.conftest import WAIT_SECONDS, ControllerTestbed, condition, controller, settings

POLICY = "crewyard-egress-demo"


async def test_a_project_of_kubectl_gets_no_more_than_the_ceiling(testbed):
    limits = {"memory": "900Gi", "cpu": "500", "ephemeral-storage": "9Ti"}
    requests = {"memory": "1Mi", "cpu": "1m", "ephemeral-storage": "1Mi"}
    await testbed.project(
        run={"resources": {"requests": requests, "limits": limits}},
        pod={
            "tolerations": [{"operator": "Exists"}],
            # The first keeps the pod from starting anywhere; the second is not allowed.
            "nodeSelector": {"crewyard.dev/none": "here", "kubernetes.io/hostname": "any"},
        },
    )
    await testbed.deployment("dep-a")
    await testbed.run("run-a", deployment="dep-a")
    pod = await testbed.until(kinds.POD, "run-a", lambda _: True)
    spec = pod["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {
        "memory": "64Gi",
        "cpu": "16",
        "ephemeral-storage": "100Gi",
    }
    assert spec["nodeSelector"] == {"crewyard.dev/none": "here"}
    # The kube-apiserver adds two of its own.
    assert all(toleration.get("key") for toleration in spec["tolerations"])
    project = await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "Limited"))
    assert condition(project, "Limited") == ("True", "AboveCeiling")


async def test_a_plan_that_the_installation_lacks_is_in_the_condition(testbed):
    await testbed.project(plan="gold")
    project = await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "Limited"))
    limited = find(project["status"]["conditions"], "Limited")
    assert limited["reason"] == "AboveCeiling"
    assert "plan: gold is lowered to free" in limited["message"]
    await testbed.kube.patch(kinds.PROJECT, "demo", {"spec": {"plan": "pro"}})
    await testbed.until(kinds.PROJECT, "demo", lambda o: condition(o, "Limited") is None)


async def test_a_project_within_the_ceiling_runs_beside_one_above_it(testbed):
    await testbed.project("greedy", run={"resources": {"limits": {"memory": "900Gi"}}})
    await testbed.project("modest", run={"resources": {"limits": {"memory": "64Mi"}}})
    for name in ("greedy", "modest"):
        await testbed.deployment(f"dep-{name}", project=name)
        await testbed.run(f"run-{name}", deployment=f"dep-{name}")
    pod = await testbed.until(kinds.POD, "run-modest", lambda _: True)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == "64Mi"
    modest = await testbed.until(kinds.PROJECT, "modest", lambda o: condition(o, "Ready"))
    assert condition(modest, "Limited") is None


@pytest.fixture
async def fenced(kube) -> AsyncIterator[ControllerTestbed]:
    """A controller whose installation allows runs one Service."""
    targets = (EgressTarget("models", {"app": "model"}, (8080,), "model"),)
    config = settings(kube.namespace, run_egress=targets)
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


async def gone(fenced) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while await fenced.kube.get(kinds.NETWORK_POLICY, POLICY) is not None:
            await asyncio.sleep(0.05)


async def test_the_policy_follows_the_spec_of_the_project(fenced):
    project = await fenced.project(run={"egress": [{"namespace": "models", "service": "model"}]})
    policy = await fenced.until(kinds.NETWORK_POLICY, POLICY, lambda _: True)
    assert policy["spec"] == {
        "podSelector": {
            "matchLabels": {"app.kubernetes.io/component": "run", "crewyard.dev/project": "demo"}
        },
        "policyTypes": ["Egress"],
        "egress": [
            {
                "to": [
                    {
                        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "models"}},
                        "podSelector": {"matchLabels": {"app": "model"}},
                    }
                ],
                "ports": [{"protocol": "TCP", "port": 8080}],
            }
        ],
    }
    assert policy["metadata"]["ownerReferences"][0]["uid"] == project.uid
    narrower = {"namespace": "models", "podSelector": {"matchLabels": {"app": "model", "size": "small"}}}
    await fenced.kube.patch(kinds.PROJECT, "demo", {"spec": {"run": {"egress": [narrower]}}})
    labels = narrower["podSelector"]
    await fenced.until(
        kinds.NETWORK_POLICY, POLICY, lambda o: o["spec"]["egress"][0]["to"][0]["podSelector"] == labels
    )
    await fenced.kube.patch(kinds.PROJECT, "demo", {"spec": {"run": None}})
    await gone(fenced)


async def test_what_the_installation_does_not_allow_is_in_the_condition(fenced):
    await fenced.project(run={"egress": [{"namespace": "kube-system"}]})
    project = await fenced.until(kinds.PROJECT, "demo", lambda o: condition(o, "Limited"))
    assert condition(project, "Limited") == ("True", "EgressRefused")
    assert await fenced.kube.get(kinds.NETWORK_POLICY, POLICY) is None
    allowed = {"namespace": "models", "service": "model"}
    await fenced.kube.patch(kinds.PROJECT, "demo", {"spec": {"run": {"egress": [allowed]}}})
    await fenced.until(kinds.NETWORK_POLICY, POLICY, lambda _: True)
    await fenced.until(kinds.PROJECT, "demo", lambda o: condition(o, "Limited") is None)
