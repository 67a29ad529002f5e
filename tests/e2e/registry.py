"""The registry as a test looks into it, and takes things out of it. Called by tests of images."""

import io
import json
import os
import tarfile
from dataclasses import dataclass
from typing import Any

import aiohttp

MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


@dataclass(frozen=True)
class Registry:
    """A registry and one repository in it."""

    address: str
    repository: str

    @classmethod
    def of(cls, image: str) -> "Registry":
        """Where an image lies; this machine knows the registry by the address of the host."""
        host, _, rest = image.partition("/")
        address = os.environ.get("CREWYARD_HOST_ADDRESS", "127.0.0.1")
        return cls(f"http://{address}:{host.rpartition(':')[2]}", rest.partition("@")[0])

    async def _get(self, path: str, accept: str = "*/*") -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.address}/v2/{self.repository}/{path}", headers={"Accept": accept}) as answer,
        ):
            answer.raise_for_status()
            return await answer.read()

    async def tags(self) -> set[str]:
        """All tags of the repository."""
        return set(json.loads(await self._get("tags/list"))["tags"] or ())

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
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as tar:
                for member in tar:
                    if member.isfile() and (file := tar.extractfile(member)) is not None:
                        found[member.name] = file.read()
        return found

    async def remove(self, image: str) -> None:
        """Deletes the manifest of an image."""
        path = f"{self.address}/v2/{self.repository}/manifests/{image.partition('@')[2]}"
        async with aiohttp.ClientSession() as session, session.delete(path) as answer:
            assert answer.status == 202, await answer.text()
