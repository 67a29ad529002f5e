"""Checks that an image has signed provenance, before its first run. Called by `controller.run.admission`."""

from collections import OrderedDict

from controller.attestation.registry import AttestationProblem, ImageRegistry
from controller.attestation.statements import provenance_problem
from controller.config import ControllerConfig
from crds.objects import Deployment, Project

MAX_VERIFIED_IMAGES = 10_000
"""Images whose verification this process remembers: neither a digest nor its signatures change."""


class ImageVerifier:
    """Verifies images of Deployments if the installation asks for it."""

    def __init__(self, registry: ImageRegistry, config: ControllerConfig) -> None:
        self._registry, self._config = registry, config
        self._verified: OrderedDict[str, None] = OrderedDict()

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
        try:
            statements = await self._registry.statements(project, digest, keys)
        except AttestationProblem as problem:
            return f"the image {image} is not verified: {problem}"
        if why := provenance_problem(statements, image, project.name, self._config):
            return f"the image {image} is not verified: {why}"
        self._verified[image] = None
        if len(self._verified) > MAX_VERIFIED_IMAGES:
            self._verified.popitem(last=False)
        return None
