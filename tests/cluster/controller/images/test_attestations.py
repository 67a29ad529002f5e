"""Images get provenance after their build, and runs wait for it where the installation verifies images."""

from dataclasses import replace

import pytest

from controller.attestation.signing import parse_private_key, signing_keys
from controller.attestation.statements import PROVENANCE_TYPE, SBOM_TYPE
from crds import kinds, names
from crds.names import ANNOTATION_ATTESTED
from tests.cluster.controller.conftest import ControllerTestbed, condition, controller, settings
from tests.cluster.controller.warm.test_warm_pods import PLAN, until_waiting
from tests.registry.conftest import registry  # noqa: F401
from tests.registry.test_attestations import new_keys, push_image, statements

KEYS = signing_keys(parse_private_key(new_keys().private), ())


@pytest.fixture
async def testbed(kube, registry):  # noqa: F811
    """A controller that signs, and runs only what it has verified."""
    config = replace(
        settings(kube.namespace), registry=registry.address, registry_insecure=True,
        signing=KEYS, verify_images=True,
    )  # fmt: skip
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


async def test_image_is_attested_and_its_run_starts(testbed, registry):  # noqa: F811
    # The selector keeps the pod from starting anywhere.
    await testbed.project(pod={"nodeSelector": {"crewyard.dev/none": "here"}}, run={"warm": 1})
    image = push_image(registry, namespace=testbed.kube.namespace)
    await testbed.deployment("dep-a", plan=PLAN, image=image)
    await testbed.run("run-a", deployment="dep-a")
    attested = await testbed.until(
        kinds.DEPLOYMENT, "dep-a", lambda o: ANNOTATION_ATTESTED in o["metadata"].get("annotations", {})
    )
    assert attested["metadata"]["annotations"][ANNOTATION_ATTESTED] == image.partition("@")[2]
    assert set(statements(image, KEYS)) == {PROVENANCE_TYPE, SBOM_TYPE}
    await testbed.until(kinds.POD, "run-a", lambda _: True)
    await until_waiting(testbed, lambda pods: len(pods) == 1)


async def test_image_that_only_a_status_names_is_not_signed(testbed, registry):  # noqa: F811
    """An account that may push and write `deployments/status` cannot have its image signed."""
    await testbed.project()
    forged = push_image(registry, extra="forged", namespace=testbed.kube.namespace)
    await testbed.deployment("dep-a", plan=PLAN, image=forged, proven=False)
    await testbed.wait_active("dep-a")
    await testbed.run("run-a", deployment="dep-a")
    await testbed.until(
        kinds.RUN, "run-a", lambda o: condition(o, "Admitted") == ("Unknown", "ImageNotVerified")
    )
    # One worker attests: when the later one is attested, the forged one has been looked at.
    image = push_image(registry, namespace=testbed.kube.namespace)
    await testbed.deployment("dep-b", plan=PLAN, image=image)
    await testbed.until(
        kinds.DEPLOYMENT, "dep-b", lambda o: ANNOTATION_ATTESTED in o["metadata"].get("annotations", {})
    )
    assert statements(forged, KEYS) == {}
    deployment = await testbed.kube.get(kinds.DEPLOYMENT, "dep-a")
    assert ANNOTATION_ATTESTED not in deployment["metadata"].get("annotations", {})


async def test_run_of_an_unattested_image_says_so(testbed, registry):  # noqa: F811
    await testbed.project(run={"warm": 1})
    missing = f"{testbed.config.repository('demo')}@sha256:{'0' * 64}"
    await testbed.deployment("dep-a", plan=PLAN, image=missing)
    await testbed.wait_active("dep-a")
    await testbed.run("run-a", deployment="dep-a")
    # On a slow machine the registry may still be asked at the first look.
    refused = await testbed.until(
        kinds.RUN, "run-a", lambda o: "no provenance of it with a valid signature" in str(o.get("status"))
    )
    assert condition(refused, "Admitted") == ("Unknown", "ImageNotVerified")
    assert (await testbed.kube.list(kinds.POD, f"{names.LABEL_COMPONENT}={names.COMPONENT_RUN}")).items == []
    deployment = await testbed.kube.get(kinds.DEPLOYMENT, "dep-a")
    assert ANNOTATION_ATTESTED not in deployment["metadata"].get("annotations", {})
