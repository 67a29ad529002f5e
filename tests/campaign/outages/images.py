"""Deployments of uploads through a registry in trouble, and whether their images are whole.

Called by the tests of the registry.
"""

import asyncio
import hashlib
import json
import os
from typing import Any

import aiohttp

from crds.kinds import DEPLOYMENT
from crds.names import name_of
from dev.settings import REGISTRY_PORT
from tests.campaign.outages.sources import Upload, source
from tests.campaign.yard import Yard
from tests.e2e.registry import MANIFESTS

BUILD_SECONDS = 900.0


def registry_address() -> tuple[str, int]:
    """The ground's registry, as this machine and pods reach it."""
    return os.environ["CREWYARD_HOST_ADDRESS"], REGISTRY_PORT


async def deploy(yard: Yard, project: str, mark: str) -> tuple[Upload, str]:
    """Uploads another source of the crew; the upload, and its deployment's id."""
    sent = await Upload.announced(yard, source(mark), project)
    assert await sent.send() in (200, 201, 204)
    return sent, await sent.deploy(project)


async def ended(yard: Yard, deployment: str) -> dict[str, Any]:
    """The deployment once its build has ended. Raises TimeoutError."""
    async with asyncio.timeout(BUILD_SECONDS):
        while True:
            found = await yard.ask("GET", f"/v1/deployments/{deployment}")
            if found["status"] not in ("pending", "building"):
                return dict(found)
            await asyncio.sleep(0.5)


async def active(yard: Yard, project: str) -> str:
    """The id of a project's active deployment."""
    return str((await yard.ask("GET", f"/v1/projects/{project}"))["active_deployment_id"])


async def whole(yard: Yard, registry: str, deployment: str) -> list[str]:
    """What is wrong with a built deployment's image: each blob must be what its digest says."""
    raw = await yard.kube.get(DEPLOYMENT, name_of(deployment))
    image = str(raw["status"]["image"])
    repository, _, digest = image.partition("/")[2].partition("@")
    base = f"{registry}/v2/{repository}"
    async with aiohttp.ClientSession() as session:

        async def fetched(path: str) -> bytes:
            async with session.get(f"{base}/{path}", headers={"Accept": MANIFESTS}) as answer:
                return await answer.read() if answer.status == 200 else b""

        manifest = await fetched(f"manifests/{digest}")
        wrong = [] if _sha(manifest) == digest else [f"{image}: the manifest is not {digest}"]
        found = json.loads(manifest) if not wrong else {"config": {}, "layers": []}
        for one in [found["config"], *found["layers"]] if not wrong else []:
            data = await fetched(f"blobs/{one['digest']}")
            if _sha(data) != one["digest"] or len(data) != one["size"]:
                wrong.append(f"{image}: {one['digest']} is torn")
    return wrong


def _sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
