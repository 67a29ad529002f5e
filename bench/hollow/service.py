"""Crewyard on a separate control plane: API server, controller, and one process for all runners.

    async with service(directory, hollow) as hollow_service:
        await hollow_service.testbed.ask("POST", "/v1/runs", {"deployment": hollow_service.testbed.project})

Called by the measurements on hollow nodes and by the soak.
"""

import json
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.hollow.control_plane import HollowControlPlane
from bench.hollow.flags import HOST
from bench.hollow.nodes import TOLERATION
from bench.hollow.process import MeasurementProcess
from crds import api_keys
from tests.campaign.child import Child
from tests.campaign.ledger import Ledger
from tests.campaign.testbed import ROOT, CampaignTestbed
from tests.testbed.ports import free_port

NAMESPACE = "hollow"
CONCURRENT_RUNS = 5000
"""Limit of the project's plan: more than any measurement needs."""
INVALID_REGISTRY = "registry.invalid"
"""There are no containers, so nothing is pulled or pushed."""


@dataclass(frozen=True)
class HollowService:
    """A running installation and the process of its runners."""

    testbed: CampaignTestbed
    runner: MeasurementProcess

    def pids(self) -> dict[str, int]:
        """Return the pids of Crewyard's processes."""
        pids = {child.name: child.pid for child in (self.testbed.controller, self.testbed.api)}
        return {name: pid for name, pid in pids.items() if pid is not None}


@asynccontextmanager
async def service(
    directory: Path, plane: HollowControlPlane, settings: Mapping[str, str] | None = None
) -> AsyncIterator[HollowService]:
    """Run both processes with a project whose deployment is active; `settings` are variables of both."""
    admin_key = api_keys.generate()
    ports = free_port(), free_port()
    environment = {**_settings(directory, plane, admin_key, *ports), **(settings or {})}
    logs = directory / "logs"
    api = Child("api", "api", ROOT, logs, environment, ports[0], "/readyz")
    controller = Child("controller", "controller", ROOT, logs, environment, ports[1], "/healthz")
    argv = [sys.executable, "-m", "bench.hollow.runner", NAMESPACE]
    runner = MeasurementProcess(
        "hollow-runner", argv, logs / "hollow-runner.log", {"KUBECONFIG": str(plane.kubeconfig)}
    )
    (directory / "data").mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        kube = await plane.connect(NAMESPACE)
        stack.push_async_callback(kube.close)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        )
        await kube.call("POST", "/api/v1/namespaces", body={"metadata": {"name": NAMESPACE}})
        testbed = CampaignTestbed(
            NAMESPACE, directory, kube, Ledger(directory / "ledger", HOST), api, controller,
            f"{INVALID_REGISTRY}/crew@sha256:{64 * '0'}", admin_key.text, HOST, session, project="hollow",
        )  # fmt: skip
        for child in (api, controller):
            stack.push_async_callback(child.end)
        stack.push_async_callback(runner.end)
        await api.start()
        await testbed.create_project()
        await controller.start()
        await testbed.wait_active()
        await runner.start()
        yield HollowService(testbed, runner)


def _settings(
    directory: Path, plane: HollowControlPlane, drawn: api_keys.ApiKey, api: int, controller: int
) -> dict[str, str]:
    record = {"id": drawn.key_id, "hash": drawn.hash, "scopes": ["admin"], "plan": "enterprise"}
    plans = {"enterprise": {"requests_per_minute": 10_000_000, "concurrent_runs": CONCURRENT_RUNS}}
    return {
        "KUBECONFIG": str(plane.kubeconfig),
        "CREWYARD_NAMESPACE": NAMESPACE,
        "CREWYARD_TOKEN_KEY": secrets.token_hex(16),
        "CREWYARD_PUBLIC_URL": f"http://{HOST}:{api}",
        "CREWYARD_INTERNAL_URL": f"http://{HOST}:{api}",
        "CREWYARD_CONTROLLER_URL": f"http://{HOST}:{controller}",
        "CREWYARD_SERVICE_IMAGE": f"{INVALID_REGISTRY}/service",
        "CREWYARD_KANIKO_IMAGE": f"{INVALID_REGISTRY}/kaniko",
        "CREWYARD_BASE_IMAGES": json.dumps({"3.11": f"{INVALID_REGISTRY}/python"}),
        "CREWYARD_REGISTRY": INVALID_REGISTRY,
        "CREWYARD_PLANS": json.dumps(plans),
        "CREWYARD_PODS": json.dumps({"run": {"tolerations": [TOLERATION]}}),
        "CREWYARD_DATA": str(directory / "data"),
        "CREWYARD_PORT": str(api),
        "CREWYARD_CONTROLLER_PORT": str(controller),
        "CREWYARD_ADMIN_KEYS": json.dumps([record]),
    }
