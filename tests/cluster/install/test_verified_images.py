"""Verification of images on an installed service: real builds, the real registry, real pods."""

import base64
import json
import os
from typing import Any

import pytest

from build.registry import attachments
from build.registry.credential import RegistryCredential
from build.registry.repository import ImageRepository
from controller.attestation.signing import parse_private_key, signing_keys
from controller.attestation.statements import PROVENANCE_TYPE, SBOM_TYPE
from crds.names import ANNOTATION_ATTESTED
from dev.registry import access
from dev.settings import REGISTRY
from tests.cluster.install.installation import ROOT, dev_settings, kubectl, until
from tests.cluster.install.usage import deploy, wait_ended
from tests.e2e.upload_project import archive, tree
from tests.registry.test_attestations import new_keys

CREW = archive(tree(ROOT / "examples" / "python"))
REASON = "ImageNotVerified"
REFUSAL = "no provenance of it with a valid signature of this installation"


def repository_of(image: str, user: str) -> ImageRepository:
    """Return the repository of an image, as this machine reaches it, with the right to push."""
    host = f"{os.environ['CREWYARD_HOST_ADDRESS']}:{REGISTRY.rpartition(':')[2]}"
    credential = RegistryCredential(access.docker_config(dev_settings(), user, host), "push")
    name = image.partition("@")[0].partition("/")[2]
    return ImageRepository(f"{host}/{name}", insecure=True, credential=credential)


def remove_attestations(repository: ImageRepository, digest: str) -> None:
    """Delete the manifest of the attestations, as anyone who may push can."""
    attached = repository.digest(attachments.attestation_tag(digest))
    assert attached is not None
    assert repository.delete(attached)


def read(namespace: str, kind: str, name: str) -> dict[str, Any]:
    """Return an object."""
    found: dict[str, Any] = json.loads(kubectl("-n", namespace, "get", kind, name, "-o", "json"))
    return found


def is_attested(deployment: dict[str, Any]) -> bool:
    """Return whether the controller has attached the attestations of the image."""
    return ANNOTATION_ATTESTED in deployment["metadata"].get("annotations", {})


def admission_of(namespace: str, run: str) -> tuple[str, str]:
    """Return reason and message of the condition Admitted, once the image is refused or the Run has a pod."""
    name = run.replace("_", "-")

    def decided() -> tuple[str, str] | None:
        status = read(namespace, "crun", name).get("status", {})
        found = next((one for one in status.get("conditions", ()) if one["type"] == "Admitted"), None)
        if found is None or (found["reason"] != REASON and not status.get("pod")):
            return None
        if "the registry is being asked" in found["message"]:
            return None
        return found["reason"], found["message"]

    outcome: tuple[str, str] = until(decided)
    return outcome


@pytest.mark.nightly
def test_only_attested_images_run(installation):
    """Slow: installs the chart and builds a crew."""
    keys, strange = new_keys(), signing_keys(parse_private_key(new_keys().private), ())
    kubectl("create", "namespace", installation.namespace)
    installation.secret("crewyard-signing", **{"key.pem": keys.private})
    installation.install("signing.verifyImages=true")
    with installation.client(installation.create_key()) as client:
        client.create_project("plain")
        name = deploy(client, "plain", CREW).replace("_", "-")
        until(lambda: is_attested(read(installation.crews, "cdep", name)))
        image = read(installation.crews, "cdep", name)["status"]["image"]
        digest, repository = image.partition("@")[2], repository_of(image, installation.name)
        genuine = attachments.read_envelopes(repository, digest)
        statements = [json.loads(base64.b64decode(json.loads(one)["payload"])) for one in genuine]
        types = [statement["predicateType"] for statement in statements]
        assert set(types) == {PROVENANCE_TYPE, SBOM_TYPE}

        # The attestations are missing.
        remove_attestations(repository, digest)
        missing = client.start_run("plain", {"name": "missing"})["id"]
        reason, message = admission_of(installation.crews, missing)
        assert reason == REASON and REFUSAL in message

        # The same statements, signed with another key.
        forged = [json.dumps(strange.sign(statement)).encode() for statement in statements]
        attachments.attach(repository, digest, zip(types, forged, strict=True))
        assert attachments.read_envelopes(repository, digest) == forged
        resigned = client.start_run("plain", {"name": "resigned"})["id"]
        reason, message = admission_of(installation.crews, resigned)
        assert reason == REASON and REFUSAL in message
        assert [client.get_run(run)["status"] for run in (missing, resigned)] == ["pending", "pending"]
        selector = ("-l", "app.kubernetes.io/component=run")
        assert kubectl("-n", installation.crews, "get", "pods", *selector, "-o", "name") == ""

        # The controller's own attestations: both runs start.
        remove_attestations(repository, digest)
        attachments.attach(repository, digest, zip(types, genuine, strict=True))
        for run, name in ((missing, "missing"), (resigned, "resigned")):
            assert wait_ended(client, run)["output"] == {"greeting": f"hello, {name}"}
