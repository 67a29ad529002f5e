"""A project on the installation of `make up HA=1`, as a test bed of the campaign.

    async with open_installation(directory, node, notifications=[…]) as testbed:
        await testbed.ask("POST", "/v1/runs", …)

The API is the one behind the Service, its store PostgreSQL and a bucket; the project is in the namespace of
the crews, beside others. Called by the tests of this directory.
"""

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from crds.kinds import DEPLOYMENT, NETWORK_POLICY, PROJECT, SECRET
from crds.names import COMPONENT_RUN, LABEL_COMPONENT, LABEL_PROJECT
from dev.settings import Settings
from kube import errors
from kube.client import KubeClient
from tests.campaign.ledger import Ledger
from tests.campaign.outages.sources import UploadedSource, source
from tests.campaign.replicas import shared_store
from tests.campaign.testbed import LIMITS, CampaignTestbed

NAMESPACE = "crews"
PLAN, CONCURRENCY = "pro", 10
BUILD_SECONDS = 600.0
UPLOAD_SECONDS = 60.0


@dataclass
class InstalledService:
    """The service behind its address, for what a campaign asks of a process."""

    url: str


@contextlib.asynccontextmanager
async def open_installation(
    directory: Path,
    settings: Settings,
    notifications: Callable[[CampaignTestbed], Awaitable[list[dict[str, Any]]]],
) -> AsyncIterator[tuple[CampaignTestbed, str]]:
    """Open a project with two built deployments, and give the name of the active one.

    The other one is the test bed's `deployment`. At the end the project is deleted.
    """
    address, key, url = (
        os.environ.get(name, "") for name in ("CREWYARD_HOST_ADDRESS", "CREWYARD_API_KEY", "CREWYARD_URL")
    )
    if not (address and key and url):
        pytest.fail('there is no dev cluster: run `make up HA=1` and `eval "$(make -s env)"` first')
    kube = await KubeClient.connect(NAMESPACE, "campaign")
    ledger = Ledger(directory / "ledger.jsonl", address)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True), timeout=aiohttp.ClientTimeout(total=30)
    )
    service: Any = InstalledService(url)
    project = f"campaign-{secrets.token_hex(4)}"
    testbed = CampaignTestbed(
        NAMESPACE, directory, kube, ledger, service, service, "", key, address, session,
        project=project, is_shared=True, read_store=partial(shared_store.read, settings, project),
    )  # fmt: skip
    try:
        ledger.start()
        await kube.create(NETWORK_POLICY, _ledger_access(testbed))
        spec = {"plan": PLAN, "run": {"resources": {"limits": LIMITS}}}
        await testbed.ask(
            "POST", "/v1/projects", {"name": project, **spec, "notifications": await notifications(testbed)}
        )
        testbed.deployment = await _build(testbed, "first")
        yield testbed, await _build(testbed, "second")
    finally:
        with contextlib.suppress(errors.KubeError):
            await _remove(kube, project)
        ledger.stop()
        await session.close()
        await kube.close()


async def _remove(kube: KubeClient, project: str) -> None:
    await kube.delete(PROJECT, project)
    await kube.delete(NETWORK_POLICY, project)
    for secret in (await kube.list(SECRET, f"{LABEL_PROJECT}={project}")).items:
        await kube.delete(SECRET, secret["metadata"]["name"])


async def _build(testbed: CampaignTestbed, mark: str) -> str:
    """Deploy the campaign's crew, and wait until it is active; the name of the Deployment."""
    sent = await UploadedSource.announced(testbed, source(f"{testbed.project} {mark}"))
    await sent.arrive(UPLOAD_SECONDS)
    name = (await sent.deploy()).replace("_", "-", 1)
    try:
        await testbed.wait_active(name, BUILD_SECONDS)
    except TimeoutError:
        raw = await testbed.kube.get(DEPLOYMENT, name)
        pytest.fail(f"{name} is not active after {BUILD_SECONDS:.0f} s: {(raw or {}).get('status')}")
    return name


def _ledger_access(testbed: CampaignTestbed) -> dict[str, Any]:
    """What lets the project's runs reach the ledger: the installation closes all private addresses."""
    labels = {LABEL_PROJECT: testbed.project, LABEL_COMPONENT: COMPONENT_RUN}
    port = int(testbed.ledger.url.rpartition(":")[2])
    egress = {
        "to": [{"ipBlock": {"cidr": f"{testbed.host}/32"}}],
        "ports": [{"protocol": "TCP", "port": port}],
    }
    spec = {"podSelector": {"matchLabels": labels}, "policyTypes": ["Egress"], "egress": [egress]}
    return {"metadata": {"name": testbed.project}, "spec": spec}
