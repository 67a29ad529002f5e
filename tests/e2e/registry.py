"""A client that reads and deletes images of the registry. Called by tests of images."""

import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import zstandard
from yarl import URL

from dev.registry import access
from dev.registry.client import token_address
from dev.settings import from_environment

MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


@dataclass(frozen=True)
class RegistryRepository:
    """A registry and one repository in it."""

    address: str
    repository: str

    @classmethod
    def of(cls, image: str) -> "RegistryRepository":
        """Where an image lies; this machine knows the registry by the address of the host."""
        host, _, rest = image.partition("/")
        address = os.environ.get("CREWYARD_HOST_ADDRESS", "127.0.0.1")
        return cls(f"http://{address}:{host.rpartition(':')[2]}", rest.partition("@")[0])

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str], basic: str = ""
    ) -> tuple[int, bytes]:
        """Status and body; with a token, where the registry sends us for one."""
        url = f"{self.address}/v2/{self.repository}/{path}"
        async with aiohttp.ClientSession() as session:
            async with session.request(method, url, headers=headers) as answer:
                challenge_url = token_address(answer.headers.get("WWW-Authenticate", ""))
                if answer.status != 401 or not challenge_url:
                    return answer.status, await answer.read()
            shown = {"Authorization": f"Basic {basic}"} if basic else {}
            async with session.get(URL(challenge_url, encoded=True), headers=shown) as answer:
                assert answer.status == 200, await answer.text()
                token = (await answer.json())["token"]
            whole = {**headers, "Authorization": f"Bearer {token}"}
            async with session.request(method, url, headers=whole) as answer:
                return answer.status, await answer.read()

    async def _get(self, path: str, accept: str = "*/*") -> bytes:
        status, body = await self._ask("GET", path, {"Accept": accept})
        assert status == 200, body
        return body

    async def tags(self) -> set[str]:
        """All tags of the repository; none where it is not there."""
        status, body = await self._ask("GET", "tags/list", {"Accept": "*/*"})
        assert status in (200, 404), body
        return set(json.loads(body)["tags"] or ()) if status == 200 else set()

    async def has(self, reference: str) -> bool:
        """Whether it has a manifest of this digest or tag."""
        status, body = await self._ask("HEAD", f"manifests/{reference}", {"Accept": MANIFESTS})
        assert status in (200, 404), body
        return status == 200

    async def manifest(self, image: str) -> dict[str, Any]:
        """The manifest of an image by digest."""
        found: dict[str, Any] = json.loads(await self._get(f"manifests/{image.partition('@')[2]}", MANIFESTS))
        return found

    async def configuration(self, image: str) -> bytes:
        """An image's configuration with its history, as it is."""
        return await self._get(f"blobs/{(await self.manifest(image))['config']['digest']}")

    async def files(self, image: str, layers: int | None = None) -> dict[str, bytes]:
        """The regular files of an image's last `layers` layers (None: all), later ones winning."""
        found: dict[str, bytes] = {}
        listed = (await self.manifest(image))["layers"]
        for layer in listed if layers is None else listed[-layers:]:
            content = await self._get(f"blobs/{layer['digest']}")
            if content.startswith(zstandard.FRAME_HEADER):
                content = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True).read()
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as tar:
                for member in tar:
                    if member.isfile() and (file := tar.extractfile(member)) is not None:
                        found[member.name] = file.read()
        return found

    async def remove(self, image: str) -> None:
        """Delete the manifest of an image."""
        basic = access.basic(from_environment(os.environ), self.repository)
        status, body = await self._ask("DELETE", f"manifests/{image.partition('@')[2]}", {}, basic)
        assert status == 202, body
