"""T6: start, memory, resync, lists and load of the apiserver with the objects of a large installation.

2,000 Projects: half in the installation's namespace, half in 100 others. Each of the first half has two Runs
alive, as its plan allows, and the same share of the waiting ones. The 100,000 ended runs are rows without an
object. Counts and memory hardly depend on other load of the machine; times do.
"""

import asyncio
import json
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from api.store.store import Store
from bench.api.lists import unique_accept
from bench.api.prepared_store import fill
from bench.api.requests_client import HttpConnection, request_milliseconds
from bench.hollow.control_plane import HollowControlPlane, control_plane, plane_directory
from bench.hollow.memory import LIVE_RUN_SECONDS
from bench.hollow.readings import cpu_seconds, memory
from bench.hollow.service import NAMESPACE, HollowService, service
from bench.lib.finding import Finding
from bench.lib.statistics import percentile
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.times import format_time
from kube.client import KubeClient
from tests.campaign.child import Child
from tests.campaign.testbed import PLAN

PROJECTS, TEAMS, ALIVE, ENDED_RUNS, WAITING_RUNS = 2_000, 100, 2_000, 100_000, 10_000
OWN_PROJECTS = PROJECTS // 2
LEVELS = (0.1, 0.5, 1.0)
"""Shares of the waiting Runs after which the cost of one is read."""
PARALLEL_CREATES = 8
STATE_TIMEOUT_SECONDS = 1200.0
SETTLE_SECONDS = 20.0
RESYNCS_SECONDS = 60.0
"""Four resyncs of each process."""
REQUESTS_OF_LIST = 100
LISTS = ("", "status=pending", "status=running", "status=succeeded", "project=size-0007&status=pending")
PROCESSES = ("controller", "api", "kube-apiserver", "etcd")
MIB = 2**20


def metric(text: str, name: str, **labels: str) -> float:
    """Return the sum of the samples of a metric that have these labels. Pure."""
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return sum(one.value for one in samples if one.name == name and labels.items() <= one.labels.items())


@dataclass(frozen=True)
class Reading:
    """At a time: processor seconds by process, and requests that the apiserver has answered."""

    at: float
    cpu: dict[str, float]
    requests: float

    def since(self, before: "Reading") -> "Reading":
        """Return the difference. Pure."""
        cpu = {name: seconds - before.cpu[name] for name, seconds in self.cpu.items()}
        return Reading(self.at - before.at, cpu, self.requests - before.requests)

    def cost(self, count: float, idle: "Reading | None" = None) -> str:
        """Return the cost of one of `count`, less what `idle` costs in that time. Pure."""
        share = self.at / idle.at if idle is not None else 0.0
        cpu = {
            name: seconds - share * (idle.cpu[name] if idle else 0.0) for name, seconds in self.cpu.items()
        }
        requests = self.requests - share * (idle.requests if idle else 0.0)
        texts = ", ".join(f"{name} {1000 * seconds / count:.1f}" for name, seconds in cpu.items())
        return f"{texts} ms; {requests / count:.1f} requests to the kube-apiserver"


@dataclass(frozen=True)
class SizedService:
    """The installation and its control plane."""

    hollow: HollowControlPlane
    service: HollowService
    session: aiohttp.ClientSession

    @property
    def children(self) -> tuple[Child, Child]:
        """API server and controller."""
        return self.service.testbed.api, self.service.testbed.controller

    async def read(self) -> Reading:
        """Return the present reading."""
        pids = {**self.service.pids(), **{name: one.pid for name, one in self.hollow.processes.items()}}
        kubeconfig = json.loads(self.hollow.kubeconfig.read_text())
        headers = {"Authorization": f"Bearer {kubeconfig['users'][0]['user']['token']}"}
        url = f"{kubeconfig['clusters'][0]['cluster']['server']}/metrics"
        async with self.session.get(url, headers=headers, ssl=False) as response:
            text = await response.text()
        cpu = {name: cpu_seconds(pids[name]) for name in PROCESSES}
        return Reading(time.monotonic(), cpu, metric(text, "apiserver_request_total"))

    async def read_idle(self) -> Reading:
        """Return the difference over some resyncs without a change."""
        before = await self.read()
        await asyncio.sleep(RESYNCS_SECONDS)
        return (await self.read()).since(before)

    async def resident_mib(self) -> dict[str, float]:
        """Return the resident memory of both processes after a pause."""
        await asyncio.sleep(SETTLE_SECONDS)
        return {name: memory(pid).resident / MIB for name, pid in self.service.pids().items()}

    async def wait_reconciled(self, projects: int, running: int, pending: int) -> None:
        """Wait until the controller has these objects in its cache and its queues are empty."""
        expected = (projects, running, pending, 0)
        async with asyncio.timeout(STATE_TIMEOUT_SECONDS):
            seen = 0
            while seen < 3:
                async with self.session.get(f"{self.service.testbed.controller.url}/metrics") as response:
                    text = await response.text()
                counted = (
                    metric(text, "crewyard_known_objects", kind="projects"),
                    metric(text, "crewyard_unfinished", kind="runs", phase="running"),
                    metric(text, "crewyard_unfinished", kind="runs", phase="pending"),
                    metric(text, "crewyard_queue_depth"),
                )
                seen = seen + 1 if counted == expected else 0
                await asyncio.sleep(0.2)

    async def stop(self) -> None:
        """Stop both processes."""
        for child in self.children:
            await child.kill(signal.SIGTERM)


async def in_parallel(work: Callable[[int], Awaitable[object]], numbers: Iterable[int]) -> None:
    """Do `work` for each number, some at the same time."""
    left = iter(numbers)

    async def take() -> None:
        for number in left:
            await work(number)

    await asyncio.gather(*(take() for _ in range(PARALLEL_CREATES)))


async def create_project(kube: KubeClient, number: int) -> None:
    """Create a Project with its built Deployment; the second half of them in the namespaces of teams."""
    name = f"size-{number:04d}"
    place = kube if number < OWN_PROJECTS else kube.at(team(number % TEAMS))
    project = await place.create(PROJECT, {"metadata": {"name": name}, "spec": {"plan": "size"}})
    owner = {
        "apiVersion": PROJECT.api_version, "kind": PROJECT.name,
        "name": name, "uid": project["metadata"]["uid"],
    }  # fmt: skip
    deployment = f"dep-{number:04d}"
    metadata = {"name": deployment, "ownerReferences": [owner]}
    await place.create(
        DEPLOYMENT,
        {"metadata": metadata, "spec": {"project": name, "source": {"archive": {"upload": "upl_size"}}}},
    )
    built = {
        "type": "Built", "status": "True", "reason": "Built", "message": "",
        "lastTransitionTime": format_time(datetime.now(UTC)),
    }  # fmt: skip
    status = {"image": f"registry.invalid/crew@sha256:{64 * '0'}", "plan": PLAN, "conditions": [built]}
    await place.patch(DEPLOYMENT, deployment, {"status": status}, "status")


def team(number: int) -> str:
    """Return the name of a team's namespace."""
    return f"team-{number:03d}"


def run(number: int) -> dict[str, Any]:
    """Return a Run of a Project in the own namespace, in turn, that keeps running once it has a pod."""
    spec = {
        "project": f"size-{number % OWN_PROJECTS:04d}",
        "input": {"seconds": LIVE_RUN_SECONDS, "events": 1},
    }
    return {"metadata": {"name": f"run-{number:06d}"}, "spec": spec}


async def measure(_installation: object, waiting: int = WAITING_RUNS) -> list[Finding]:
    """Measure with `waiting` Runs that wait and the other objects."""
    plans = {
        "enterprise": {"requests_per_minute": 10_000_000, "concurrent_runs": 10},
        "size": {"requests_per_minute": 10_000_000, "concurrent_runs": ALIVE // OWN_PROJECTS},
    }
    settings = {"CREWYARD_PLANS": json.dumps(plans), "CREWYARD_SEAL_AFTER": "1000000"}
    with plane_directory() as directory:
        await _store_ended_runs(directory / "data")
        async with (
            control_plane(directory) as hollow,
            service(directory, hollow, settings) as hollow_service,
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session,
        ):
            return await _measure(SizedService(hollow, hollow_service, session), waiting)


async def _store_ended_runs(data: Path) -> None:
    data.mkdir(parents=True, exist_ok=True)
    store = await Store.open(data, NAMESPACE, None)
    await fill(store, ENDED_RUNS)
    await store.close()


async def _start(sized: SizedService, projects: int, running: int, pending: int) -> str:
    """Start both processes; return the seconds until each is ready, and its processor seconds."""
    texts = []
    for child in sized.children:
        started = time.monotonic()
        await child.start()
        if child.name == "controller":
            await sized.wait_reconciled(projects, running, pending)
        seconds = time.monotonic() - started
        texts.append(f"{child.name} {seconds:.1f} s, {cpu_seconds(child.pid or 0):.1f} s of a processor")
    return "; ".join(texts)


async def _measure(sized: SizedService, waiting: int) -> list[Finding]:
    findings = []

    def add(what: str, fact: str, **more: Any) -> None:
        findings.append(Finding("T6", what, fact=fact, **{"unit": "", **more}))
        print(f"  {datetime.now(UTC):%H:%M:%S} {findings[-1].line()}", flush=True)

    kube = sized.service.testbed.kube
    await sized.stop()
    few_start = await _start(sized, 1, 0, 0)
    idle = await sized.resident_mib()
    for number in range(TEAMS):
        await kube.call("POST", "/api/v1/namespaces", body={"metadata": {"name": team(number)}})
    await sized.stop()
    for child in sized.children:
        child.settings["CREWYARD_NAMESPACES"] = ",".join(map(team, range(TEAMS)))
    namespaces_start = await _start(sized, 1, 0, 0)
    levels = {"one namespace": idle, f"{TEAMS + 1} namespaces": await sized.resident_mib()}
    sizes = f"{PROJECTS} Projects in {TEAMS + 1} namespaces"

    async def add_cost(what: str, level: str, count: int, work: Awaitable[None], *state: int) -> None:
        before = await sized.read()
        await work
        await sized.wait_reconciled(PROJECTS + 1, *state)
        difference = (await sized.read()).since(before)
        levels[level] = await sized.resident_mib()
        idle = await sized.read_idle()
        add(f"{what}, without what passes in that time anyway", difference.cost(count, idle))
        add(f"15 s without a change (a resync of each process), {level}", idle.cost(idle.at / 15))

    projects = in_parallel(lambda number: create_project(kube, number), range(PROJECTS))
    await add_cost("a Project with an active Deployment", f"{PROJECTS} Projects", PROJECTS, projects, 0, 0)
    runs = in_parallel(lambda number: kube.create(RUN, run(number)), range(ALIVE))
    await add_cost("a Run, created → Running", f"{ALIVE} Runs alive", ALIVE, runs, ALIVE, 0)
    done = 0
    for level in [round(waiting * share) for share in LEVELS]:
        runs = in_parallel(lambda number: kube.create(RUN, run(ALIVE + number)), range(done, level))
        what = f"a Run, created → queued, {done} to {level} waiting"
        await add_cost(what, f"{level} waiting", level - done, runs, ALIVE, level)
        done = level

    await sized.stop()
    many_start = await _start(sized, PROJECTS + 1, ALIVE, waiting)
    levels["the same, restarted"] = await sized.resident_mib()
    add("start with one Project", few_start)
    add(f"start with {TEAMS + 1} namespaces", namespaces_start)
    add(f"start with {sizes}, {ALIVE} Runs alive, {waiting} waiting, {ENDED_RUNS} ended", many_start)
    for name in idle:
        add(
            f"memory of the {name} with {ENDED_RUNS} ended runs",
            ", ".join(f"{level[name]:.0f} MiB with {what}" for what, level in levels.items()),
        )
    for query in LISTS:
        times = await asyncio.to_thread(_list_times, sized, query)
        add(f"GET /v1/runs?{query}", f"p99 {percentile(times, 0.99):.3g} ms", unit="ms", values=times)
    return findings


def _list_times(sized: SizedService, query: str) -> list[float]:
    testbed = sized.service.testbed
    connection = HttpConnection(testbed.api.url, testbed.key)
    path = f"/v1/runs?{query}&per_page=20".replace("?&", "?")
    times = [request_milliseconds(connection, path, unique_accept()) for _ in range(REQUESTS_OF_LIST + 5)]
    connection.close()
    return times[5:]
