"""G2: projects that are polled without change, against `git ls-remote` once for each of them.

By default 200 projects every 12 s, the rate of 1,000 every 60 s; each has a repository of its own, so
that no two share a listing. The repositories have no branch main: a look ends with the listing.
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
from bench.lib.installation import Ground
from bench.runs.writes import METRICS, counted
from crds.kinds import PROJECT
from tests.e2e.demo import GIT_HOST
from tests.e2e.yard import eventually
from tests.testbed.git_server import GitServer

COUNT = 200
PER_SECOND = 1000 / 60
ROUNDS = 5
LISTED = 30
SYSTEM = "crewyard-system"
AT_ONCE = 8


async def _cpu(ground: Ground) -> float:
    """Seconds on a processor of the controller and of all it started."""
    shown = await ground.yard.kubectl(
        "-n", SYSTEM, "exec", "deploy/crewyard-controller", "--", "cat", "/proc/1/stat"
    )
    fields = shown.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def _counts(ground: Ground) -> tuple[float, float]:
    """Looks at repositories and writes to the apiserver, so far."""
    text = await ground.yard.kubectl("get", "--raw", METRICS)
    return counted(text, "crewyard_git_poll_total"), counted(text, "crewyard_api_writes_total")


async def _create(ground: Ground, server: GitServer, name: str, interval: int) -> None:
    git = {"url": server.url(name, host=GIT_HOST), "ref": {"branch": "main"}, "interval": f"{interval}s"}
    body = {"metadata": {"name": name}, "spec": {"source": {"git": git}}}
    await ground.kube.create(PROJECT, body)


async def measure(ground: Ground, count: int = COUNT) -> list[Finding]:
    """Processor time of the controller for as many looks, and of git for one listing each."""
    prefix, interval = f"bench-{secrets.token_hex(3)}", max(1, round(count / PER_SECOND))
    names = [f"{prefix}-{number}" for number in range(count)]
    address = os.environ["CREWYARD_HOST_ADDRESS"]
    with tempfile.TemporaryDirectory() as root, GitServer(Path(root), address) as server:
        for name in names:
            server.create(name).commit({"main.py": ""}, "A commit", branch="other")
        idle, begun = await _cpu(ground), time.monotonic()
        await asyncio.sleep(interval)
        base = (await _cpu(ground) - idle) / (time.monotonic() - begun)
        try:
            for start in range(0, count, AT_ONCE):
                some = names[start : start + AT_ONCE]
                await asyncio.gather(*(_create(ground, server, name, interval) for name in some))
            await eventually(lambda: _said(ground, prefix), lambda found: found >= count, 300, 2)
            await asyncio.sleep(interval)
            rounds = [await _round(ground, server, names, interval, base) for _ in range(ROUNDS)]
        finally:
            for name in names:
                await ground.kube.delete(PROJECT, name)
    share = sum(one.spent for one in rounds) / sum(one.lasted for one in rounds)
    fact = (
        f"{count} projects every {interval} s: {share:.1%} of a core, {base:.1%} without them; "
        f"{sum(one.looks for one in rounds):.0f} looks, {sum(one.writes for one in rounds):.0f} writes"
    )
    pairs = [(one.theirs, one.ours(base)) for one in rounds]
    peer = "git ls-remote once for each"
    return [Finding("G2", "projects polled without change, a look", pairs=pairs, peer=peer, fact=fact)]


@dataclass(frozen=True)
class Round:
    """The processor's seconds of one listing by git, and what the controller did in a while."""

    theirs: float
    spent: float
    lasted: float
    looks: float
    writes: float

    def ours(self, base: float) -> float:
        """The processor's seconds of one look, without what the controller takes anyway."""
        return (self.spent - base * self.lasted) / max(self.looks, 1)


async def _round(ground: Ground, server: GitServer, names: list[str], interval: int, base: float) -> Round:
    theirs = await _listings(server, names[:LISTED])
    looks, writes = await _counts(ground)
    spent, begun = await _cpu(ground), time.monotonic()
    await asyncio.sleep(2 * interval)
    spent, lasted = await _cpu(ground) - spent, time.monotonic() - begun
    after = await _counts(ground)
    return Round(theirs, spent, lasted, after[0] - looks, after[1] - writes)


async def _said(ground: Ground, prefix: str) -> int:
    """How many of them were looked at."""
    found = (await ground.kube.list(PROJECT)).items
    return sum(
        item["metadata"]["name"].startswith(prefix)
        and any(one["reason"] == "BranchNotFound" for one in item["status"]["conditions"])
        for item in found
    )


async def _listings(server: GitServer, names: list[str]) -> float:
    """Processor seconds of one `git ls-remote`, with what it starts; the server is not counted."""
    return sum([await asyncio.to_thread(_listing, server.url(name)) for name in names]) / len(names)


def _listing(url: str) -> float:
    process = subprocess.Popen(["git", "ls-remote", url], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, url
    return used.ru_utime + used.ru_stime
