"""SBOM of an image: the time to read its layers is that of its own layers alone."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from controller.attestation import reconcile
from controller.attestation.reconcile import LAYERS_TIMEOUT_SECONDS, AttestationReconciler
from controller.attestation.signing import SigningKeys, parse_private_key, signing_keys
from controller.attestation.statements import SBOM_TYPE
from controller.build_proof.proof import prove
from controller.config import ControllerConfig
from crds import kinds
from crds.objects import Deployment, Project
from tests.unit.controller.attestation.test_signing import private_pem
from tests.unit.controller.memory_kube import ReconcilerTestbed

LAYERS = 3


class BusyRegistry:
    """A registry whose process reads other images' layers first, then one of this image for `own` seconds."""

    def __init__(self, own: float, other: float) -> None:
        self.own, self.other, self.now = own, other, 0.0
        self.allowed: list[float] = []
        self.attached: list[dict[str, Any]] = []

    async def statements(self, *_: object) -> list[dict[str, Any]]:
        return []

    async def request(
        self, project: Project, action: str, digest: str, more: Mapping[str, Any] = {}, _: float = 0.0
    ) -> dict[str, Any]:
        if action == "layers":
            return {"layers": [f"sha256:{number}" for number in range(LAYERS)]}
        if action == "attach":
            envelopes = [json.loads(base64.b64decode(envelope)) for _, envelope in more["envelopes"]]
            self.attached = [json.loads(base64.b64decode(one["payload"])) for one in envelopes]
            return {}
        allowed = more["seconds"]
        self.allowed.append(allowed)
        seconds = min(self.own, allowed)
        self.now += self.other + seconds
        complete = self.own <= allowed
        return {"added": [], "removed": [], "databases": {}, "complete": complete, "seconds": seconds}


@pytest.fixture(scope="module")
def keys() -> SigningKeys:
    return signing_keys(parse_private_key(private_pem(ec.generate_private_key(ec.SECP256R1()))), ())


@pytest.mark.parametrize(
    ("own", "other", "allowed", "aggregate"),
    [
        (1.0, LAYERS_TIMEOUT_SECONDS, [120.0, 119.0, 118.0], "complete"),
        (50.0, 0.0, [120.0, 70.0, 20.0], "incomplete"),
    ],
)
async def test_sbom_is_charged_the_time_of_its_own_layers_only(
    make: Any,
    config: ControllerConfig,
    keys: SigningKeys,
    monkeypatch: pytest.MonkeyPatch,
    own: float,
    other: float,
    allowed: list[float],
    aggregate: str,
) -> None:
    registry, testbed = BusyRegistry(own, other), ReconcilerTestbed()
    clock = type("Clock", (), {"monotonic": lambda: registry.now})
    monkeypatch.setattr(reconcile, "time", clock, raising=False)
    image = f"{config.repository('demo')}@sha256:{'1' * 64}"
    built = make.deployment()
    built.raw["status"]["image"] = image
    condition = {**built.raw["status"]["conditions"][0], "lastTransitionTime": make.ago(1)}
    status = {**built.raw["status"], "conditions": [condition]}
    proof = prove(config.token_key, config.namespace, built, "uid-pod", status)
    testbed.show(kinds.PROJECT, make.project())
    testbed.show(kinds.DEPLOYMENT, Deployment({**built.raw, "status": {**status, "proof": proof}}))
    signing = replace(config, signing=keys)
    await AttestationReconciler(testbed.applier, signing, registry).reconcile("dep-a")  # type: ignore[arg-type]
    assert registry.allowed == allowed
    [sbom] = [one for one in registry.attached if one["predicateType"] == SBOM_TYPE]
    assert [one["aggregate"] for one in sbom["predicate"]["compositions"]] == [aggregate]
