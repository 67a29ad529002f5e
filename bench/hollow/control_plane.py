"""Control plane with hollow nodes: etcd, apiserver, scheduler, controllers, kwok.

    async with control_plane(directory) as hollow:
        hollow.kubeconfig

It uses the dev cluster's binaries (`make up`) and is isolated from the dev cluster in both directions. All
processes listen only on loopback and end with their parent; all other state is in `directory`. Called by the
measurements on hollow nodes and by the soak.
"""

import asyncio
import fcntl
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml
from kubernetes.aio import client, config

from bench.hollow import flags as hollow_flags
from bench.hollow import nodes as hollow_nodes
from bench.hollow.flags import HOST, Flags
from bench.hollow.process import MeasurementProcess
from dev import go_build
from dev.progress import StepProgress
from dev.settings import REPOSITORY, from_environment
from kube.client import KubeClient
from tests.testbed.ports import free_port

READY_TIMEOUT_SECONDS = 60.0
CRDS = ("project", "deployment", "run")


@dataclass(frozen=True)
class HollowControlPlane:
    """A running control plane; `processes` by name."""

    kubeconfig: Path
    processes: dict[str, MeasurementProcess]

    async def connect(self, namespace: str) -> KubeClient:
        """Return a client with administrator rights; the caller closes it."""
        settings = client.Configuration()
        await config.load_kube_config(config_file=str(self.kubeconfig), client_configuration=settings)
        settings.connection_pool_maxsize = 64
        return KubeClient(client.ApiClient(settings), namespace, "bench")


@contextmanager
def plane_directory() -> Iterator[Path]:
    """Yield the directory of a control plane under a lock, after removing leftovers.

    Raises BlockingIOError while another measurement holds the lock.
    """
    directory = from_environment(os.environ).run / "hollow"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory / "plane", ignore_errors=True)
        try:
            yield directory / "plane"
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def control_plane(directory: Path) -> AsyncIterator[HollowControlPlane]:
    """Run a control plane with ready nodes and the CRDs. Raises ProcessError, DevClusterError."""
    settings = from_environment(os.environ)
    kwok = await asyncio.to_thread(go_build.build, settings, go_build.KWOK, StepProgress())
    if not (settings.bin / "kube-apiserver").exists():
        raise FileNotFoundError(f"{settings.bin / 'kube-apiserver'} does not exist; run `make up` first")
    directory.mkdir(parents=True, exist_ok=True)
    hollow = HollowControlPlane(directory / "kubeconfig", {})
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, directory / "etcd", ignore_errors=True)

        async def start(name: str, flags: Flags, ready: Callable[[], Awaitable[bool]] | None) -> None:
            program = str(kwok if name == "kwok" else settings.bin / name)
            argv = [program, *(f"--{flag}={value}" for flag, value in flags.items())]
            process = MeasurementProcess(name, argv, directory / "logs" / f"{name}.log")
            hollow.processes[name] = process
            stack.push_async_callback(process.end)
            await process.start(ready)

        etcd, api = free_port(), free_port()
        await start("etcd", hollow_flags.etcd(directory, etcd), _health_check(f"http://{HOST}:{etcd}/health"))
        await _write_credentials(directory, api)
        await start(
            "kube-apiserver",
            hollow_flags.apiserver(directory, etcd, api),
            _health_check(f"https://{HOST}:{api}/readyz"),
        )
        kube = await hollow.connect("default")
        stack.push_async_callback(kube.close)
        await start("kube-controller-manager", hollow_flags.controllers(directory), None)
        await start("kube-scheduler", hollow_flags.scheduler(directory), None)
        (directory / "kwok.yaml").write_text(hollow_nodes.configuration())
        await start("kwok", {"config": directory / "kwok.yaml", "kubeconfig": hollow.kubeconfig}, None)
        await _create_crds_and_nodes(kube, hollow.processes["kwok"])
        yield hollow


async def _create_crds_and_nodes(kube: KubeClient, kwok: MeasurementProcess) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for name in CRDS:
        body = yaml.safe_load((REPOSITORY / "crds" / f"{name}.yaml").read_text())
        await kube.call("POST", definitions, body=body)
    for number in range(hollow_nodes.NODE_COUNT):
        await kube.call("POST", "/api/v1/nodes", body=hollow_nodes.node(number))
    async with asyncio.timeout(READY_TIMEOUT_SECONDS):
        while kwok.pid and not await _is_ready(kube, definitions):
            await asyncio.sleep(0.3)


async def _is_ready(kube: KubeClient, definitions: str) -> bool:
    kinds = (await kube.call("GET", definitions))["items"]
    nodes = (await kube.call("GET", "/api/v1/nodes"))["items"]
    expected = [(kind, "Established") for kind in kinds] + [(node, "Ready") for node in nodes]
    return all(
        any(
            condition["type"] == condition_type and condition["status"] == "True"
            for condition in (item.get("status") or {}).get("conditions") or ()
        )
        for item, condition_type in expected
    )


def _health_check(url: str) -> Callable[[], Awaitable[bool]]:
    async def ready() -> bool:
        limit = aiohttp.ClientTimeout(total=5)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.get(url, ssl=False) as response,
            ):
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    return ready


async def _write_credentials(directory: Path, port: int) -> None:
    """Write the key that signs service account tokens, and the administrator's token."""
    token = secrets.token_hex(32)
    (directory / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    argv = ["openssl", "genrsa", "-out", str(directory / "sa.key"), "2048"]
    process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.DEVNULL)
    if await process.wait() != 0:
        raise RuntimeError("openssl genrsa failed; is openssl installed?")
    (directory / "kubeconfig").write_text(hollow_flags.kubeconfig(directory, port, token))
    for name in ("tokens.csv", "kubeconfig", "sa.key"):
        (directory / name).chmod(0o600)
