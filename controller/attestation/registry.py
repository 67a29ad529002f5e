"""The image registry, through a child process. Called by `controller.attestation.reconcile` and `verify`."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

from controller.attestation.signing import SigningKeys
from controller.child_process import ChildProcess
from controller.config import ControllerConfig
from controller.pods.push_secret import DOCKER_CONFIG_KEY, push_secret
from controller.pods.secret_check import SecretRefused, read_secret
from crds import kinds
from crds.objects import Project
from crds.secrets.use import build_references
from kube.client import KubeClient

REQUEST_TIMEOUT_SECONDS = 60.0
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


class AttestationProblem(Exception):
    """Why the registry could not be asked, or does not vouch for an image."""


class RegistryChild(ChildProcess):
    """Started `controller.attestation.child` process."""

    MODULE = "controller.attestation.child"
    INHERITED_VARIABLES = (*ChildProcess.INHERITED_VARIABLES, "REQUESTS_CA_BUNDLE", *_PROXY_VARIABLES)
    MAX_RESPONSE_BYTES = 64 << 20


class RegistryProcess:
    """Requests to registries, one at a time; the child process starts with the first."""

    def __init__(self) -> None:
        self._child: RegistryChild | None = None
        self._lock = asyncio.Lock()

    async def request(self, body: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the response. Raises AttestationProblem."""
        async with self._lock:
            try:
                async with asyncio.timeout(seconds):
                    response = await self._exchange(body)
            except TimeoutError:
                response = {"problem": f"the registry did not answer within {seconds:g} s"}
                await self.close()
            if response is None:
                response = {"problem": "the process that asks the registry ended"}
                await self.close()
        if "problem" in response:
            raise AttestationProblem(str(response["problem"]))
        return response

    async def close(self) -> None:
        """Kill the child process."""
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    async def _exchange(self, body: dict[str, Any]) -> dict[str, Any] | None:
        if self._child is None or not self._child.alive:
            try:
                self._child = await RegistryChild.start()
            except OSError:
                return None
        return await self._child.exchange(body)


class ImageRegistry:
    """Requests about the images of one namespace's Projects."""

    def __init__(
        self, kube: KubeClient, config: ControllerConfig, process: RegistryProcess | None = None
    ) -> None:
        """`process` may be that of several namespaces; by default it is one of its own."""
        self._kube, self._config = kube, config
        self._process = process or RegistryProcess()

    async def request(
        self,
        project: Project,
        action: str,
        digest: str,
        more: Mapping[str, Any] = {},
        seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> dict[str, Any]:
        """Return the response about a digest. Raises AttestationProblem and `kube.errors`."""
        secret, auth = await self._credential(project)
        body = {
            "action": action,
            "repository": self._config.repository(project.name),
            "insecure": self._config.registry_insecure,
            "secret": secret,
            "auth": auth,
            "digest": digest,
            **more,
        }
        return await self._process.request(body, seconds)

    async def statements(self, project: Project, digest: str, keys: SigningKeys) -> list[dict[str, Any]]:
        """Return the statements about an image that one of the keys signed. Raises as `request`."""
        response = await self.request(project, "envelopes", digest)
        envelopes = map(base64.b64decode, response["envelopes"])
        return [statement for statement in map(keys.verified, envelopes) if statement is not None]

    async def close(self) -> None:
        """Kill the child process."""
        await self._process.close()

    async def _credential(self, project: Project) -> tuple[str, str]:
        """Return name and content of the Secret that pushes the project's images; empty if there is none."""
        config = self._config
        name, references = push_secret(project, config), build_references(project, config.registry)
        own = next((one for one in references if one.name == name), None)
        try:
            if own is not None:
                secret = await read_secret(self._kube, project, own, config.secret_use)
            else:
                secret = await self._kube.get(kinds.SECRET, name) if name else None
        except SecretRefused as problem:
            raise AttestationProblem(str(problem)) from None
        encoded = ((secret or {}).get("data") or {}).get(DOCKER_CONFIG_KEY) or ""
        return name, base64.b64decode(encoded).decode("utf-8", "replace")
