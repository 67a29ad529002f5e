"""Builds, runs and polls get a Secret only where the Secret says that their Project may use it."""

from dataclasses import replace

import pytest

from crds import kinds
from crds.secrets.use import SecretUse
from tests.cluster.controller.conftest import FAST, ControllerTestbed, condition, controller, settings

NO_IMAGE = "registry.invalid/none:1"
ARCHIVE = {"archive": {"upload": "upl_1", "sha256": "a" * 64}}


@pytest.fixture
async def testbed(kube):
    """A controller that wants labels, and whose build pods never start."""
    timing = replace(FAST, image_pull=600, start_timeout=600)
    config = settings(kube.namespace, service_image=NO_IMAGE, timing=timing, secret_use=SecretUse.LABELLED)
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


async def secret(testbed, name, **metadata):
    await testbed.kube.create(
        kinds.SECRET, {"metadata": {"name": name, **metadata}, "stringData": {"index-url": "https://x/"}}
    )


async def label(testbed, name, project="demo"):
    labels = {"metadata": {"labels": {"crewyard.dev/project": project}}}
    await testbed.kube.patch(kinds.SECRET, name, labels)


@pytest.mark.parametrize(
    "build", [{"secretRef": {"name": "index"}}, {"push": {"secretRef": {"name": "index"}}}]
)
async def test_a_build_waits_until_the_secret_names_its_project(testbed, build):
    await secret(testbed, "index", labels={"crewyard.dev/project": "other"})
    await testbed.project(build=build)
    body = {"metadata": {"name": "dep-a"}, "spec": {"project": "demo", "source": ARCHIVE}}
    await testbed.kube.create(kinds.DEPLOYMENT, body)
    refused = await testbed.until(
        kinds.DEPLOYMENT, "dep-a", lambda o: condition(o, "Built") == ("False", "PodRefused")
    )
    refusal = next(c for c in refused["status"]["conditions"] if c["type"] == "Built")
    assert "kubectl label secret index crewyard.dev/project=demo" in refusal["message"]
    assert (await testbed.kube.list(kinds.POD)).items == []
    await label(testbed, "index")
    await testbed.until(kinds.DEPLOYMENT, "dep-a", lambda o: o["status"].get("buildPod"))


@pytest.mark.parametrize(
    ("name", "pod"), [("demo-env", {}), ("pull", {"imagePullSecrets": [{"name": "pull"}]})]
)
async def test_a_run_waits_until_the_secret_names_its_project(testbed, name, pod):
    await secret(testbed, name)
    # The selector keeps the pod from starting anywhere.
    await testbed.project(pod={**pod, "nodeSelector": {"crewyard.dev/none": "here"}})
    await testbed.deployment("dep-a")
    await testbed.run("run-a", deployment="dep-a")
    refused = await testbed.until(
        kinds.RUN, "run-a", lambda o: condition(o, "Admitted") == ("Unknown", "PodRefused")
    )
    refusal = next(c for c in refused["status"]["conditions"] if c["type"] == "Admitted")
    assert f"kubectl label secret {name} crewyard.dev/project=demo" in refusal["message"]
    assert await testbed.kube.get(kinds.POD, "run-a") is None
    await label(testbed, name)
    await testbed.until(kinds.POD, "run-a", lambda _: True)


@pytest.mark.parametrize(
    ("name", "metadata", "words"),
    [
        ("git", {}, "does not say that project demo may use it"),
        ("beta-env", {"labels": {"crewyard.dev/project": "demo"}}, "holds the variables"),
        (
            "git",
            {
                "labels": {"crewyard.dev/project": "demo"},
                "annotations": {"crewyard.dev/hosts": "git.example.com"},
            },
            "may not go to attacker.invalid",
        ),
    ],
)
async def test_a_poll_sends_no_foreign_secret(testbed, name, metadata, words):
    await secret(testbed, name, **metadata)
    await testbed.project(
        source={"git": {"url": "http://attacker.invalid/x.git", "secretRef": {"name": name}}}
    )
    refused = await testbed.until(
        kinds.PROJECT, "demo", lambda o: condition(o, "Ready") == ("False", "SecretNotAllowed")
    )
    refusal = next(c for c in refused["status"]["conditions"] if c["type"] == "Ready")
    assert words in refusal["message"]
