"""Deployments of uploads through a failing registry, and whether their images are whole.

Called by the tests of the registry.
"""

import asyncio
import hashlib
import json
import os
import urllib.error
from typing import Any

from crds.kinds import DEPLOYMENT
from crds.names import name_of
from dev.registry import client
from dev.settings import REGISTRY_PORT
from tests.campaign.outages.sources import STORED, UploadedSource, source
from tests.campaign.testbed import CampaignTestbed
from tests.e2e.registry import MANIFESTS

BUILD_SECONDS = 900.0


def registry_address() -> tuple[str, int]:
    """Return host and port of the dev cluster's registry for this machine and pods."""
    return os.environ["CREWYARD_HOST_ADDRESS"], REGISTRY_PORT


async def deploy(testbed: CampaignTestbed, project: str, mark: str) -> tuple[UploadedSource, str]:
    """Upload another source of the crew; the upload, and its deployment's id."""
    sent = await UploadedSource.announced(testbed, source(mark), project)
    assert await sent.send() in STORED
    return sent, await sent.deploy(project)


async def ended(testbed: CampaignTestbed, deployment: str) -> dict[str, Any]:
    """The deployment once its build has ended. Raises TimeoutError."""
    async with asyncio.timeout(BUILD_SECONDS):
        while True:
            found = await testbed.ask("GET", f"/v1/deployments/{deployment}")
            if found["status"] not in ("pending", "building"):
                return dict(found)
            await asyncio.sleep(0.5)


async def active(testbed: CampaignTestbed, project: str) -> str:
    """The id of a project's active deployment."""
    return str((await testbed.ask("GET", f"/v1/projects/{project}"))["active_deployment_id"])


async def whole(testbed: CampaignTestbed, registry: str, deployment: str) -> list[str]:
    """What is wrong with a built deployment's image: each blob must be what its digest says."""
    raw = await testbed.kube.get(DEPLOYMENT, name_of(deployment))
    image = str(raw["status"]["image"])
    repository, _, digest = image.partition("/")[2].partition("@")
    base = f"{registry}/v2/{repository}"

    async def fetched(path: str) -> bytes:
        return await asyncio.to_thread(_fetched, f"{base}/{path}")

    manifest = await fetched(f"manifests/{digest}")
    wrong = [] if _sha(manifest) == digest else [f"{image}: the manifest is not {digest}"]
    found = json.loads(manifest) if not wrong else {"config": {}, "layers": []}
    for one in [found["config"], *found["layers"]] if not wrong else []:
        data = await fetched(f"blobs/{one['digest']}")
        if _sha(data) != one["digest"] or len(data) != one["size"]:
            wrong.append(f"{image}: {one['digest']} is torn")
    return wrong


def _fetched(url: str) -> bytes:
    try:
        with client.open_url(url, MANIFESTS) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError:
        return b""


def _sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
