"""Attests one Deployment's image: signs provenance and SBOM, and attaches them in the registry.

It has its own queue and worker: a slow registry delays no build, no activation and no run. Called by
`controller.runtime.worker` under the key `attestations/<deployment>`.
"""

import base64
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from build.image.distributions import LayerContent, installed
from controller.attestation.registry import AttestationProblem, ImageRegistry
from controller.attestation.signing import SigningKeys
from controller.attestation.statements import PROVENANCE_TYPE, SBOM_TYPE, is_about, provenance, sbom
from controller.build_proof.proof import proven_pod
from controller.config import ControllerConfig
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import ObjectEvent, Patch
from crds import kinds
from crds.names import ANNOTATION_ATTESTED
from crds.objects import Deployment, Project
from crds.times import format_second

LAYERS_TIMEOUT_SECONDS = 120.0
"""Time to read the layers of one image; the SBOM of one that takes longer says that it is incomplete.

The time until the registry's process, which serves one request at a time, begins with them does not count.
"""
LAYER_MARGIN_SECONDS = 30.0
RETRY_SECONDS = 60.0
MAX_CACHED_LAYERS = 256


@dataclass(frozen=True)
class AttestationReconciler:
    """Reconciler of attestations; `layers` has the content of known layers, such as those of base images."""

    applier: Applier
    config: ControllerConfig
    registry: ImageRegistry
    layers: OrderedDict[str, LayerContent] = field(default_factory=OrderedDict)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    """Since when the builds have the images of `config`."""
    reported_problems: dict[str, str] = field(default_factory=dict)

    async def reconcile(self, name: str) -> None:
        """Attest one Deployment's image if that is not recorded. Raises `kube.errors`."""
        keys, key = self.config.signing, event_map.attestation(name)
        if keys is None:
            return
        raw = await self.applier.get(kinds.DEPLOYMENT, name, key)
        deployment = Deployment(raw) if raw else None
        raw_project = await self.applier.get(kinds.PROJECT, deployment.project, key) if deployment else None
        if deployment is None or raw_project is None or not event_map.lacks_attestation(deployment):
            self.reported_problems.pop(name, None)
            self.applier.queues.remove(key)
            return
        image = str(deployment.image)
        if proven_pod(self.config.token_keys, self.config.namespace, deployment) is None:
            self._record_problem(deployment, "nothing proves that a build made it; deploy again")
            self.applier.queues.remove(key)
            return
        try:
            await self._attest(Project(raw_project), deployment, image, keys)
        except AttestationProblem as problem:
            self._record_problem(deployment, str(problem))
            self.applier.queues.add(key, RETRY_SECONDS)
            return
        value = {"metadata": {"annotations": {ANNOTATION_ATTESTED: image.partition("@")[2]}}}
        await self.applier.patch(
            Patch(kinds.DEPLOYMENT, name, value, deployment.resource_version, None), by=key
        )
        self.reported_problems.pop(name, None)
        # Runs that need a verified image; the change of the Deployment enqueues the waiting pods.
        self.applier.queues.add(event_map.admission(deployment.project))

    async def _attest(self, project: Project, deployment: Deployment, image: str, keys: SigningKeys) -> None:
        repository, _, digest = image.partition("@")
        if repository != self.config.repository(project.name):
            raise AttestationProblem(f"{image} is not in the project's repository")
        existing = await self.registry.statements(project, digest, keys)
        present = {
            kind
            for kind in (PROVENANCE_TYPE, SBOM_TYPE)
            if any(is_about(one, image, kind) for one in existing)
        }
        # An image that two commits share keeps the provenance of the first.
        missing: list[tuple[str, dict[str, Any]]] = []
        if PROVENANCE_TYPE not in present:
            missing.append((PROVENANCE_TYPE, provenance(deployment, image, self.config, self.started)))
        if SBOM_TYPE not in present:
            layers = await self._read_layers(project, digest)
            complete = all(layer.complete for layer in layers)
            created = format_second(datetime.now(UTC))
            missing.append((SBOM_TYPE, sbom(image, *installed(layers), complete, created)))
        if missing:
            envelopes = [
                (kind, base64.b64encode(json.dumps(keys.sign(statement)).encode()).decode())
                for kind, statement in missing
            ]
            await self.registry.request(project, "attach", digest, {"envelopes": envelopes})

    async def _read_layers(self, project: Project, digest: str) -> list[LayerContent]:
        response = await self.registry.request(project, "layers", digest)
        layers, seconds_left = [], LAYERS_TIMEOUT_SECONDS
        for digest in map(str, response["layers"]):
            layer, seconds = await self._read_layer(project, digest, seconds_left)
            layers.append(layer)
            seconds_left = max(0.0, seconds_left - seconds)
        return layers

    async def _read_layer(self, project: Project, digest: str, seconds: float) -> tuple[LayerContent, float]:
        """Return a layer, read for at most `seconds`, and the seconds that this took."""
        if (known := self.layers.get(digest)) is not None:
            self.layers.move_to_end(digest)
            return known, 0.0
        response = await self.registry.request(
            project, "layer", digest, {"seconds": seconds}, seconds + LAYER_MARGIN_SECONDS
        )
        layer = LayerContent(
            tuple(response["added"]),
            tuple(response["removed"]),
            bool(response["complete"]),
            {path: tuple(entries) for path, entries in response["databases"].items()},
        )
        if layer.complete:
            self.layers[digest] = layer
            if len(self.layers) > MAX_CACHED_LAYERS:
                self.layers.popitem(last=False)
        return layer, float(response["seconds"])

    def _record_problem(self, deployment: Deployment, problem: str) -> None:
        if self.reported_problems.get(deployment.name) == problem:
            return
        self.reported_problems[deployment.name] = problem
        note = ObjectEvent("NotAttested", f"The image has no provenance yet: {problem}", True)
        self.applier.recorder.record(kinds.DEPLOYMENT, deployment.raw, note, datetime.now(UTC))
