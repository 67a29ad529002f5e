"""A separate Crewyard on the real cluster with killable processes: namespace, API server, controller.

    async with open_testbed(directory, project={"plan": "enterprise"}) as found:
        found.controller.kill()

Both processes are children of the test and run the code of a tree, this one or a patched copy; pods of the
real kubelet reach the api, and the ledger, at the host's address. Called by all tests of the campaign.
"""

import asyncio
import contextlib
import json
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from crds import api_keys
from crds.kinds import DEPLOYMENT, PROJECT
from crds.names import LABEL_PROJECT
from crds.times import format_time
from kube import errors
from kube.client import KubeClient
from tests.campaign import image, installed_service
from tests.campaign.child import Child
from tests.campaign.ledger import Ledger
from tests.campaign.store.contents import StoreContents
from tests.testbed.ports import free_port

TREE = "CREWYARD_CAMPAIGN_TREE"
ROOT = Path(os.environ.get(TREE) or Path(__file__).parents[2])
"""The product under test: this tree, or another one that the environment names, such as an older commit's."""
PLAN = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"}
LIMITS = {"memory": "192Mi", "ephemeral-storage": "192Mi"}
"""Low, so that crews that want too much soon meet them."""


class ApiAway(AssertionError):
    """The API did not answer in time; any other AssertionError of a call is a refusal."""


@dataclass
class CampaignTestbed:
    """Connections without faults, and the processes that get the faults."""

    namespace: str
    directory: Path
    kube: KubeClient
    ledger: Ledger
    api: Child
    controller: Child
    image: str
    key: str
    host: str
    session: aiohttp.ClientSession = field(repr=False)
    project: str = "crew"
    deployment: str = "dep-campaign"
    children: list[Child] = field(default_factory=list)
    is_shared: bool = False
    """Whether other projects are there too: then only the objects of this one count."""
    read_store: Callable[[], Awaitable[StoreContents]] | None = None
    """Reads rows and bytes of a store that is not in the API server's directory."""

    def counts(self, raw: Mapping[str, Any]) -> bool:
        """Whether a Run, a Deployment or a pod is one of this campaign."""
        labels = raw["metadata"].get("labels") or {}
        return not self.is_shared or self.project in (raw["spec"].get("project"), labels.get(LABEL_PROJECT))

    def runs_page(self, page: int, size: int) -> str:
        """The path of one page of the campaign's runs."""
        only = f"&project={self.project}" if self.is_shared else ""
        return f"/v1/runs?per_page={size}&page={page}{only}"

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and body of one call with the admin key. Raises aiohttp's errors while the api is away."""
        sent = {"Authorization": f"Bearer {self.key}", **headers}
        async with self.session.request(method, self.api.url + path, json=body, headers=sent) as answer:
            raw = await answer.read()
            return answer.status, json.loads(raw) if answer.content_type == "application/json" else raw

    async def ask(
        self, method: str, path: str, body: Any = None, seconds: float = 600, **headers: str
    ) -> Any:
        """The data of a call, repeated while the api is away, as a client would.

        Raises ApiAway; AssertionError if the API refuses the call.
        """
        end = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                status, found = await self.call(method, path, body, **headers)
                if status < 400:
                    return found["data"] if isinstance(found, dict) else found
                problem = f"{status} {found}"
                if status < 500 and status != 429:
                    raise AssertionError(f"{method} {path}: {problem}")
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                problem = repr(error)
            if asyncio.get_running_loop().time() >= end:
                raise ApiAway(f"{method} {path}: {problem}")
            await asyncio.sleep(0.2)

    def add_controller(self, tree: Path | None = None) -> Child:
        """A second controller of the same namespace, not started yet; it is ended with the test bed."""
        port = free_port()
        settings = {**self.controller.settings, "CREWYARD_CONTROLLER_PORT": str(port)}
        name = f"controller{len(self.children)}"
        logs = self.directory / "logs"
        made = Child(name, "controller", tree or self.controller.tree, logs, settings, port, "/healthz")
        self.children.append(made)
        return made

    async def create_project(self, **spec: Any) -> None:
        """The project with its active deployment, whose image is there already.

        Call it before a controller runs: that would begin to build.
        """
        whole = {"plan": "enterprise", "run": {"resources": {"limits": LIMITS}}, **spec}
        await self.ask("POST", "/v1/projects", {"name": self.project, **whole})
        await self.deploy(self.deployment)

    async def deploy(self, name: str) -> None:
        """A Deployment of the project that is built already."""
        made = await self.kube.get(PROJECT, self.project)
        assert made is not None
        owner = {
            "apiVersion": PROJECT.api_version,
            "kind": PROJECT.name,
            "name": self.project,
            "uid": made["metadata"]["uid"],
        }
        spec = {"project": self.project, "source": {"archive": {"upload": "upl_campaign"}}}
        await self.kube.create(
            DEPLOYMENT, {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
        )
        built = {
            "type": "Built",
            "status": "True",
            "reason": "Built",
            "message": "",
            "lastTransitionTime": format_time(datetime.now(UTC)),
        }
        status = {"image": self.image, "plan": PLAN, "conditions": [built]}
        await self.kube.patch(DEPLOYMENT, name, {"status": status}, "status")

    async def wait_active(self, name: str | None = None, seconds: float = 180) -> None:
        """Wait until the deployment is the active one, for the api too."""
        expected = (name or self.deployment).replace("-", "_", 1)
        async with asyncio.timeout(seconds):
            while True:
                found = await self.ask("GET", f"/v1/projects/{self.project}")
                if found["active_deployment_id"] == expected:
                    return
                await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def open_testbed(
    directory: Path,
    *,
    tree: Path = ROOT,
    settings: Mapping[str, str] | None = None,
    concurrency: int = 10,
    project: Mapping[str, Any] | None = None,
    kubeconfig: Path | None = None,
    api_kubeconfig: Path | None = None,
    start: bool = True,
) -> AsyncIterator[CampaignTestbed]:
    """Open a ready test bed with an active deployment; at the end delete all but the logs in `directory`.

    `tree` is where the product's code is; `settings` are environment variables of both processes besides;
    `concurrency` is what the project's plan allows; `project` its spec besides. `kubeconfig` is that of the
    controller, and of the api where `api_kubeconfig` is not given. With `start=False` nothing runs yet:
    start `api`, then `create_project`, then start `controller`.
    """
    address = os.environ.get("CREWYARD_HOST_ADDRESS")
    if not address or not os.environ.get("KUBECONFIG"):
        pytest.fail('there is no dev cluster: run `make up` and `eval "$(make -s env)"` first')
    namespace = f"campaign-{secrets.token_hex(4)}"
    kube = await KubeClient.connect(namespace, "campaign")
    installed = await installed_service.installed(kube)
    base = json.loads(installed["CREWYARD_BASE_IMAGES"])["3.11"]
    port = installed["CREWYARD_REGISTRY"].partition("/")[0].rpartition(":")[2]
    made = await asyncio.to_thread(image.ensure, tree, base, f"{address}:{port}")
    drawn = api_keys.generate()
    record = {"id": drawn.key_id, "hash": drawn.hash, "scopes": ["admin"], "plan": "enterprise"}
    api_port, controller_port = free_port(), free_port()
    plans = {"enterprise": {"requests_per_minute": 10_000_000, "concurrent_runs": concurrency}}
    shared = {
        **installed,
        "CREWYARD_NAMESPACE": namespace,
        "CREWYARD_REGISTRY_SECRET": installed_service.PUSH,
        "CREWYARD_TOKEN_KEY": secrets.token_hex(16),
        "CREWYARD_PUBLIC_URL": f"http://127.0.0.1:{api_port}",
        "CREWYARD_INTERNAL_URL": f"http://{address}:{api_port}",
        "CREWYARD_CONTROLLER_URL": f"http://{address}:{controller_port}",
        "CREWYARD_PLANS": json.dumps(plans),
        "CREWYARD_DATA": str(directory / "data"),
        "CREWYARD_PORT": str(api_port),
        "CREWYARD_CONTROLLER_PORT": str(controller_port),
        "CREWYARD_ADMIN_KEYS": json.dumps([record]),
        "CREWYARD_LOG_LEVEL": "info",
        # Two active controllers do no harm: most tests with two do without the election.
        "CREWYARD_LEADER_ELECTION": "off",
        # The checks compare pods with those of an undisturbed run: they stay as long as their Run objects.
        "CREWYARD_RUN_POD_TTL": "3600",
        **(settings or {}),
    }
    of_controller = {"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}
    of_api = {"KUBECONFIG": str(api_kubeconfig)} if api_kubeconfig else of_controller
    logs = directory / "logs"
    (directory / "data").mkdir(parents=True, exist_ok=True)
    api = Child("api", "api", tree, logs, {**shared, **of_api}, api_port, "/readyz")
    controller = Child(
        "controller", "controller", tree, logs, {**shared, **of_controller}, controller_port, "/healthz"
    )
    ledger = Ledger(directory / "ledger.jsonl", address)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True), timeout=aiohttp.ClientTimeout(total=30)
    )
    found = CampaignTestbed(
        namespace, directory, kube, ledger, api, controller, made, drawn.text, address, session,
        children=[api, controller],
    )  # fmt: skip
    try:
        await installed_service.make(kube, namespace)
        ledger.start()
        if start:
            await api.start()
            await found.create_project(**(project or {}))
            await controller.start()
            await found.wait_active()
        yield found
    finally:
        for child in found.children:
            await child.end()
        with contextlib.suppress(errors.KubeError):
            await kube.call("DELETE", f"/api/v1/namespaces/{namespace}")
        ledger.stop()
        await session.close()
        await kube.close()
