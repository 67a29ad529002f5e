"""G2: polling of unchanged projects, against one `git ls-remote` for each of them.

The default is 200 projects every 12 s, the rate of 1,000 every 60 s; each has a separate repository, so no
two share a listing. The repositories have no branch main: a poll ends after the listing.
"""

import asyncio
import os
import secrets
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from bench.runs.writes import CONTROLLER_METRICS_PATH, metric_sum
from crds.kinds import PROJECT
from tests.e2e.demo import GIT_HOST
from tests.e2e.testbed import eventually
from tests.testbed.git_server import GitServer

PROJECT_COUNT = 200
POLLS_PER_SECOND = 1000 / 60
ROUND_COUNT = 5
LISTINGS_PER_ROUND = 30
SYSTEM = "crewyard-system"
PARALLEL_CREATES = 8


async def controller_cpu_seconds(installation: MeasuredInstallation) -> float:
    """Return the CPU seconds of the controller and its children."""
    stat = await installation.testbed.kubectl(
        "-n", SYSTEM, "exec", "deploy/crewyard-controller", "--", "cat", "/proc/1/stat"
    )
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def _counts(installation: MeasuredInstallation) -> tuple[float, float]:
    """Return the polls of repositories and the writes to the apiserver so far."""
    text = await installation.testbed.kubectl("get", "--raw", CONTROLLER_METRICS_PATH)
    return metric_sum(text, "crewyard_git_poll_total"), metric_sum(text, "crewyard_api_writes_total")


async def _create(installation: MeasuredInstallation, server: GitServer, name: str, interval: int) -> None:
    git = {"url": server.url(name, host=GIT_HOST), "ref": {"branch": "main"}, "interval": f"{interval}s"}
    body = {"metadata": {"name": name}, "spec": {"source": {"git": git}}}
    await installation.kube.create(PROJECT, body)


async def measure(installation: MeasuredInstallation, count: int = PROJECT_COUNT) -> list[Finding]:
    """Measure the controller's CPU time for the polls, and git's for one listing each."""
    prefix, interval = f"bench-{secrets.token_hex(3)}", max(1, round(count / POLLS_PER_SECOND))
    names = [f"{prefix}-{number}" for number in range(count)]
    address = os.environ["CREWYARD_HOST_ADDRESS"]
    with tempfile.TemporaryDirectory() as root, GitServer(Path(root), address) as server:
        for name in names:
            server.create(name).commit({"main.py": ""}, "A commit", branch="other")
        idle, started = await controller_cpu_seconds(installation), time.monotonic()
        await asyncio.sleep(interval)
        base = (await controller_cpu_seconds(installation) - idle) / (time.monotonic() - started)
        try:
            for start in range(0, count, PARALLEL_CREATES):
                batch = names[start : start + PARALLEL_CREATES]
                await asyncio.gather(*(_create(installation, server, name, interval) for name in batch))
            await eventually(
                lambda: _polled_projects(installation, prefix), lambda polled: polled >= count, 300, 2
            )
            await asyncio.sleep(interval)
            rounds = [await _round(installation, server, names, interval, base) for _ in range(ROUND_COUNT)]
        finally:
            for name in names:
                await installation.kube.delete(PROJECT, name)
    share = sum(poll_round.cpu_seconds for poll_round in rounds) / sum(
        poll_round.duration for poll_round in rounds
    )
    fact = (
        f"{count} projects every {interval} s: {share:.1%} of a core, {base:.1%} without them; "
        f"{sum(poll_round.polls for poll_round in rounds):.0f} polls, "
        f"{sum(poll_round.writes for poll_round in rounds):.0f} writes"
    )
    pairs = [(poll_round.listing_seconds, poll_round.seconds_per_poll(base)) for poll_round in rounds]
    peer = "git ls-remote once for each"
    return [Finding("G2", "projects polled without change, a poll", pairs=pairs, peer=peer, fact=fact)]


@dataclass(frozen=True)
class PollRound:
    """CPU seconds of one listing by git, and the controller's activity over `duration` seconds."""

    listing_seconds: float
    cpu_seconds: float
    duration: float
    polls: float
    writes: float

    def seconds_per_poll(self, base: float) -> float:
        """Return the CPU seconds of one poll, without the controller's base load."""
        return (self.cpu_seconds - base * self.duration) / max(self.polls, 1)


async def _round(
    installation: MeasuredInstallation, server: GitServer, names: list[str], interval: int, base: float
) -> PollRound:
    listing_seconds = await _listings(server, names[:LISTINGS_PER_ROUND])
    polls, writes = await _counts(installation)
    cpu_spent, started = await controller_cpu_seconds(installation), time.monotonic()
    await asyncio.sleep(2 * interval)
    cpu_spent, duration = await controller_cpu_seconds(installation) - cpu_spent, time.monotonic() - started
    after = await _counts(installation)
    return PollRound(listing_seconds, cpu_spent, duration, after[0] - polls, after[1] - writes)


async def _polled_projects(installation: MeasuredInstallation, prefix: str) -> int:
    """Return how many of the projects have been polled."""
    projects = (await installation.kube.list(PROJECT)).items
    return sum(
        item["metadata"]["name"].startswith(prefix)
        and any(condition["reason"] == "BranchNotFound" for condition in item["status"]["conditions"])
        for item in projects
    )


async def _listings(server: GitServer, names: list[str]) -> float:
    """Return the CPU seconds of one `git ls-remote` and its children, without the server."""
    return sum([await asyncio.to_thread(_listing, server.url(name)) for name in names]) / len(names)


def _listing(url: str) -> float:
    process = subprocess.Popen(["git", "ls-remote", url], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, url
    return usage.ru_utime + usage.ru_stime
