"""Checks that an image has signed provenance, before its first run. Called by `controller.run.admission`."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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
ANSWER_SECONDS = 2.0
"""From a request to the registry until a reconcile goes on without the answer: it holds a worker."""
LookKey = tuple[str, str]
"""Uid and version of a Deployment."""


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
        self._looks: dict[LookKey, tuple[asyncio.Task[str | None], float]] = {}
        """Requests without an answer yet, and the time of the loop until which reconciles wait for it."""

    async def problem(self, project: Project, deployment: Deployment) -> str | None:
        """Return why the image must not run; None if it may. Raises `kube.errors`.

        One request looks at an image; it goes on where the registry does not answer soon.
        """
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
        key, loop = (deployment.uid, version), asyncio.get_running_loop()
        if key not in self._looks:
            look = asyncio.create_task(self._verify(project, deployment, digest, keys))
            self._looks[key] = look, loop.time() + ANSWER_SECONDS
            look.add_done_callback(partial(self._end, key))
        look, until = self._looks[key]
        await asyncio.wait({look}, timeout=max(0.0, until - loop.time()))
        if not look.done() and last is not None:
            return f"{last.problem}; the registry is being asked again"
        if not look.done():
            return f"the image {image} is not verified yet: the registry is being asked"
        return look.result()

    def is_looking(self, deployment: Deployment) -> bool:
        """Return whether the registry has not answered yet about the Deployment's image."""
        return (deployment.uid, deployment.resource_version) in self._looks

    def _end(self, key: LookKey, look: asyncio.Task[str | None]) -> None:
        del self._looks[key]
        if not look.cancelled():
            # Retrieved: where no reconcile waits for it any more, the next one looks again.
            look.exception()

    async def _verify(
        self, project: Project, deployment: Deployment, digest: str, keys: SigningKeys
    ) -> str | None:
        """Look at the image and record the answer; return why it must not run. Raises `kube.errors`."""
        image, version = str(deployment.image), deployment.resource_version
        why = await self._look(project, image, digest, keys)
        if why is None:
            self._unverified.pop(deployment.uid, None)
            self._verified[image] = None
            if len(self._verified) > MAX_VERIFIED_IMAGES:
                self._verified.popitem(last=False)
            return None
        # The registry answers one request at a time: runs of other images wait for this one.
        last = self._unverified.get(deployment.uid)
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
