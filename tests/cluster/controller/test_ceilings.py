"""A Project that kubectl wrote gets pods within the ceilings, and its condition says so."""

from crds import kinds
from tests.cluster.controller.conftest import condition


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
