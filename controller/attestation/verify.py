"""Checks that an image has signed provenance, before its first run. Called by `controller.run.admission`."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from controller.attestation.registry import AttestationProblem, ImageRegistry
from controller.attestation.signing import SigningKeys
from controller.attestation.statements import provenance_problem
from controller.backoff import backoff_seconds
from controller.config import ControllerConfig
from crds.objects import Deployment, Project

MAX_VERIFIED_IMAGES = 10_000
"""Images whose verification this process remembers: neither a digest nor its signatures change."""
FIRST_RETRY_SECONDS = 5.0
MAX_RETRY_SECONDS = 60.0


@dataclass(frozen=True)
class UnverifiedImage:
    """Answer about a Deployment's image that counts until `retry_at`, or until that has another version."""

    problem: str
    version: str
    failures: int
    retry_at: float


class ImageVerifier:
    """Verifies images of Deployments if the installation asks for it."""

    def __init__(
        self, registry: ImageRegistry, config: ControllerConfig, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` returns monotonic seconds."""
        self._registry, self._config, self._clock = registry, config, clock
        self._verified: OrderedDict[str, None] = OrderedDict()
        self._unverified: OrderedDict[str, UnverifiedImage] = OrderedDict()

    async def problem(self, project: Project, deployment: Deployment) -> str | None:
        """Return why the image must not run; None if it may. Raises `kube.errors`."""
        keys, image = self._config.signing, str(deployment.image)
        if not self._config.verify_images or keys is None:
            return None
        repository, _, digest = image.partition("@")
        if repository != self._config.repository(project.name):
            return f"the image {image} is not verified: it is not in the project's repository"
        if image in self._verified:
            return None
        last, version = self._unverified.get(deployment.uid), deployment.resource_version
        if last is not None and last.version == version and self._clock() < last.retry_at:
            return last.problem
        why = await self._look(project, image, digest, keys)
        if why is None:
            self._unverified.pop(deployment.uid, None)
            self._verified[image] = None
            if len(self._verified) > MAX_VERIFIED_IMAGES:
                self._verified.popitem(last=False)
            return None
        # The registry answers one request at a time: runs of other images wait for this one.
        failures = last.failures + 1 if last is not None and last.version == version else 1
        retry_at = self._clock() + backoff_seconds(FIRST_RETRY_SECONDS, failures, MAX_RETRY_SECONDS)
        problem = f"the image {image} is not verified: {why}"
        self._unverified[deployment.uid] = UnverifiedImage(problem, version, failures, retry_at)
        if len(self._unverified) > MAX_VERIFIED_IMAGES:
            self._unverified.popitem(last=False)
        return problem

    async def _look(self, project: Project, image: str, digest: str, keys: SigningKeys) -> str | None:
        """Return why the registry does not vouch for the image."""
        try:
            statements = await self._registry.statements(project, digest, keys)
        except AttestationProblem as problem:
            return str(problem)
        return provenance_problem(statements, image, project.name, self._config)
