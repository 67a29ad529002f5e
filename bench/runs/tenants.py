"""X11: what one tenant at its limits costs another one: figures of the other, without and with the first.

The greedy project uses up its plan in each way alone, and in all at once: runs that print as fast as they can
and runs that wait, builds, and requests beyond the rate of its keys. The quiet project's runs of L4 only wait
too: runs that sleep have its slots, so that accepting a run is measured and not its pod.
W1 and G1 are measured beside all uses at once, each with projects of its own.
"""

import asyncio
import contextlib
import itertools
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from bench.lib.finding import Finding
from bench.lib.installation import CODE, MeasuredInstallation
from bench.lib.statistics import Pair
from bench.runs import warm
from bench.runs.print_to_client import CODE as PRINTING
from bench.sources.push import push_targets
from crds.kinds import POD, RUN
from tests.e2e.testbed import ApiResponse, TestbedError, eventually
from tests.e2e.upload_project import archive, upload

RUNS, REQUESTS, BUILDS = "runs that print, and wait", "requests", "builds"
EACH_USE = (RUNS, REQUESTS, BUILDS)
ROUND_COUNT = 2
"""For each of the uses."""
POST_COUNT = 41
LINE_COUNT = 120
WARM_RUN_COUNT = 11
PUSH_PROJECTS = 6
WARMUP_LINES = 20
"""First lines of a run, which do not count: a client may still be connecting."""
PAUSE_SECONDS = 0.05
SETTLE_SECONDS = 5.0
REQUEST_LOOPS = 4
KEY_COUNT = 10
"""Of the greedy project; together they have the rate of requests that a project may have."""
PRINTING_RUNS = 2
"""The slots of the plan `free`."""
WAITING_RUNS = 1100
"""More than may wait in a project."""
CLEANUP_SECONDS = 300
LINES_A_SECOND = 20_000
FLOOD_SECONDS = 600
"""More than a round takes; the runs end with their project."""
REFUSED_PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Probe:
    """A figure of a quiet project, with a function that takes its values once."""

    what: str
    unit: str
    values: Callable[[], Awaitable[list[float]]]


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure X11: rounds for each use, each without the greedy project and then with it."""
    quiet, printing = await installation.project("free"), await installation.project()
    waiting = await quiet.deploy_and_wait({"main.py": CODE})
    printer = await printing.deploy_and_wait({"main.py": PRINTING})
    for _ in range(PRINTING_RUNS):
        rest = {"deployment": waiting, "entrypoint": "main:rests", "input": {"seconds": 3600}}
        await installation.testbed.post("/v1/runs", rest)
    requests = [
        Probe("L4, POST /v1/runs → 201", "ms", lambda: _post_times(installation, waiting)),
        Probe("S1, print → client", "ms", lambda: _line_ages(installation, printer)),
    ]
    findings = [
        finding for use in EACH_USE for finding in await _measure_beside(installation, (use,), requests)
    ]
    crew = await warm.deploy(installation, "langgraph")
    async with push_targets(installation, PUSH_PROJECTS) as targets:
        starts = [
            Probe("W1, POST → first line, with a waiting pod", "s", lambda: _first_lines(crew)),
            Probe("G1, push → Deployment object, by webhook", "s", targets.push_all),
        ]
        return [*findings, *await _measure_beside(installation, EACH_USE, requests + starts)]


async def _measure_beside(
    installation: MeasuredInstallation, uses: tuple[str, ...], probes: list[Probe]
) -> list[Finding]:
    """Measure rounds without the greedy project and then with it."""
    pairs: list[list[Pair]] = [[] for _ in probes]
    answers: Counter[str] = Counter()
    for _ in range(ROUND_COUNT):
        alone = [await probe.values() for probe in probes]
        async with _flood(installation, uses, answers):
            await asyncio.sleep(SETTLE_SECONDS)
            beside = [await probe.values() for probe in probes]
        for collected, one, other in zip(pairs, alone, beside, strict=True):
            collected += zip(one, other, strict=True)
    limits = (
        f"beside a tenant at its limits of {uses[0]}" if len(uses) == 1 else "beside a tenant at all limits"
    )
    fact = ", ".join(f"{answer}: {count}" for answer, count in sorted(answers.items()))
    return [
        *(
            Finding("X11", f"{probe.what}, {limits}", probe.unit, collected, peer="without the other tenant")
            for probe, collected in zip(probes, pairs, strict=True)
        ),
        Finding("X11", f"what it was answered, {limits}", fact=fact),
    ]


async def _first_lines(crew: warm.WarmCrew) -> list[float]:
    """Return the seconds of each run from POST to its first line. Raises ValueError if one took no pod."""
    runs = [await crew.first_line_of_run() for _ in range(WARM_RUN_COUNT)]
    if not all(took for _, took in runs):
        raise ValueError(f"{sum(not took for _, took in runs)} runs took no waiting pod")
    return [seconds for seconds, _ in runs]


async def _post_times(installation: MeasuredInstallation, deployment: str) -> list[float]:
    """Return the milliseconds of each request; the runs are canceled, as the queue is bounded."""
    body = {"deployment": deployment, "entrypoint": "main:rests", "input": {"seconds": 0}}
    times: list[float] = []
    runs: list[str] = []
    for _ in range(POST_COUNT):
        started = time.perf_counter()
        run = await installation.testbed.post("/v1/runs", body)
        times.append((time.perf_counter() - started) * 1000)
        runs.append(run["id"])
        await asyncio.sleep(PAUSE_SECONDS)
    for name in runs:
        await installation.testbed.post(f"/v1/runs/{name}/cancel", {})
    return times


async def _line_ages(installation: MeasuredInstallation, deployment: str) -> list[float]:
    """Return the age in milliseconds of each line at its arrival. Raises ValueError if one was lost."""
    body = {"deployment": deployment, "input": {"count": LINE_COUNT}}
    run = (await installation.testbed.post("/v1/runs", body))["id"]
    ages = [
        (time.time_ns() - int(message.data["message"])) / 1e6
        async for message in installation.testbed.stream(f"/v1/runs/{run}/events", seconds=300)
        if message.event == "log"
    ]
    if len(ages) != LINE_COUNT:
        raise ValueError(f"{len(ages)} of {LINE_COUNT} lines of {run} arrived")
    return ages[WARMUP_LINES:]


@contextlib.asynccontextmanager
async def _flood(
    installation: MeasuredInstallation, uses: tuple[str, ...], answers: Counter[str]
) -> AsyncIterator[None]:
    """Keep a new project at its limits; delete it, with its pods, at the end. Count what it is answered."""
    greedy = await installation.project("free")
    deployment = await greedy.deploy_and_wait({"main.py": CODE})
    key = {"name": greedy.project, "scopes": ["run", "deploy"], "projects": [greedy.project], "plan": "free"}
    created = [await installation.testbed.post("/v1/api-keys", key) for _ in range(KEY_COUNT)]
    keys = itertools.cycle(one["key"] for one in created)
    lines = {"count": LINES_A_SECOND * FLOOD_SECONDS, "pace": LINES_A_SECOND}
    body = {"deployment": deployment, "entrypoint": "main:lines", "input": lines}
    for _ in range(PRINTING_RUNS + WAITING_RUNS if RUNS in uses else 0):
        _count(answers, "runs", await installation.testbed.call("POST", "/v1/runs", body))

    async def request() -> ApiResponse:
        return await installation.testbed.call("GET", "/v1/runs", key=next(keys))

    async def build() -> ApiResponse:
        source = archive({"main.py": f"{CODE}\n# {secrets.token_hex(8)}\n"})
        context = await upload(installation.testbed, greedy.project, source, next(keys))
        body = {"project": greedy.project, "build_context_url": context}
        return await installation.testbed.call("POST", "/v1/deployments", body, key=next(keys))

    calls = [("requests", request)] * (REQUEST_LOOPS if REQUESTS in uses else 0)
    calls += [("builds", build)] if BUILDS in uses else []
    loops = [asyncio.ensure_future(_repeat(answers, what, call)) for what, call in calls]
    try:
        yield
        for loop in loops:
            if loop.done():
                loop.result()
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        for one in created:
            await installation.testbed.call("DELETE", f"/v1/api-keys/{one['id']}")
        await installation.testbed.kubectl("delete", "cproj", greedy.project, "--wait=false")
        # The next round begins without them.
        await eventually(
            lambda: _left(installation, greedy.project), lambda left: left == 0, CLEANUP_SECONDS, 1
        )


async def _left(installation: MeasuredInstallation, project: str) -> int:
    """Return how many runs and pods of the project are left."""
    runs = (await installation.kube.list(RUN)).items
    pods = (await installation.kube.list(POD, f"crewyard.dev/project={project}")).items
    own = [run for run in runs if (run.get("spec") or {}).get("project") == project]
    return len(pods) + len(own)


async def _repeat(answers: Counter[str], what: str, call: Callable[[], Awaitable[ApiResponse]]) -> None:
    """Call without end, one after the other, with a short pause after a refusal."""
    while True:
        try:
            if _count(answers, what, await call()) < 400:
                continue
        except TestbedError:
            answers[f"{what} without an upload"] += 1
        await asyncio.sleep(REFUSED_PAUSE_SECONDS)


def _count(answers: Counter[str], what: str, answer: ApiResponse) -> int:
    answers[f"{what} {answer.status}"] += 1
    return answer.status
