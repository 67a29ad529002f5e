"""Watches that are late, lossy, half open or stale: no run starts twice, and statuses converge soon after.

Both the controller and the API server with its projector get the faults.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from crds.kinds import RUN
from crds.names import id_of
from tests.campaign.campaign import Campaign, campaign
from tests.campaign.cuts.stage import CutStage, stage
from tests.campaign.ledger import starts
from tests.campaign.proxy.recording import ListRecorder, StaleLists
from tests.campaign.proxy.rule import (
    CutBeforeRequest,
    DelayEvents,
    DropEvents,
    ErrorStorm,
    ExpiredWatch,
    LostResponse,
    ProxyRule,
)
from tests.campaign.reports.report import require_good

CONCURRENCY = 10
PROMISED = 20.0
MOST = 3 * PROMISED
"""What a slow machine that does much else is given, beside the time that it takes undisturbed."""
ANEW_SECONDS = 120.0
SCRIPT = {"events": 2, "sleep": 1.0}
Fault = Callable[[CutStage], AbstractAsyncContextManager[None]]


def ruled(*make: Callable[[], ProxyRule]) -> Fault:
    """Rules in both proxies."""

    @contextlib.asynccontextmanager
    async def fault(made: CutStage) -> AsyncIterator[None]:
        rules = {process: [one() for one in make] for process in made.proxies}
        every = [rule for mine in rules.values() for rule in mine]
        for process, proxy in made.proxies.items():
            proxy.rules += rules[process]
        try:
            yield
            # Some rules affect only new requests, such as the next watch.
            await made.wait_until(lambda: any(rule.injected for rule in every), ANEW_SECONDS)
        finally:
            for process, proxy in made.proxies.items():
                proxy.rules[:] = [rule for rule in proxy.rules if rule not in rules[process]]

    return fault


@contextlib.asynccontextmanager
async def half_open(made: CutStage) -> AsyncIterator[None]:
    """All open watches stay open and say nothing any more; the fault is over when it has started."""
    assert sum(proxy.make_half_open() for proxy in made.proxies.values()) > 0
    yield


@contextlib.asynccontextmanager
async def behind(made: CutStage) -> AsyncIterator[None]:
    """Both processes are killed, and read lists of some time ago when they start again."""
    recordings = {process: ListRecorder() for process in made.proxies}
    for process, proxy in made.proxies.items():
        proxy.rules.append(recordings[process])
        # What a process reads when it starts.
        await made.child(process).restart()
        await made.wait_until(lambda lists=recordings[process].lists: _of_runs(lists))
        recordings[process].stop()
    yield
    stale = {process: StaleLists(recording, times=2) for process, recording in recordings.items()}
    for process, proxy in made.proxies.items():
        proxy.rules[:] = [rule for rule in proxy.rules if rule is not recordings[process]]
        proxy.rules.append(stale[process])
    for process in made.proxies:
        await made.child(process).restart()
    await made.wait_until(lambda: all(rule.injected > 0 for rule in stale.values()))
    for process, proxy in made.proxies.items():
        proxy.rules.remove(stale[process])


def _of_runs(lists) -> bool:
    return any(path.endswith("/runs") for path, *_ in lists)


def writes(call):
    return call.writes


def talks(call):
    return not call.watches


STALE: dict[str, Fault] = {"watches half open": half_open, "lists of before the restart": behind}
LOSSY: dict[str, Fault] = {
    "events late by 3 s": ruled(lambda: DelayEvents(3.0)),
    "every event dropped": ruled(DropEvents),
    "every 2nd watch too old": ruled(
        lambda: ExpiredWatch(2), lambda: CutBeforeRequest(lambda call: call.watches, 3)
    ),
}
STORMS: dict[str, Fault] = {
    "every 2nd event dropped": ruled(lambda: DropEvents(2)),
    "every 3rd request refused": ruled(lambda: ErrorStorm(talks, nth=3)),
    "every 3rd write cut, every 4th answer lost": ruled(
        lambda: CutBeforeRequest(writes, 3), lambda: LostResponse(writes, 4)
    ),
}


@contextlib.asynccontextmanager
async def calm(made: CutStage) -> AsyncIterator[None]:
    """No fault at all: what the machine needs for the same."""
    yield


async def disturbed(made: CutStage, found: Campaign, name: str, fault: Fault) -> float:
    """Create runs during a fault. Return the seconds from its end until all outcomes are visible."""
    loop = asyncio.get_running_loop()
    names: list[str] = []

    async def doing() -> None:
        async with fault(made):
            names.append(await found.work.post(SCRIPT))
            names.extend(await found.work.apply([SCRIPT, SCRIPT]))
            # Their crews have started, unless the fault keeps them from it.
            with contextlib.suppress(TimeoutError):
                seconds = 0 if fault is calm else 5
                await made.wait_until(
                    lambda: set(names) <= set(starts(made.testbed.ledger.entries())), seconds
                )

    await (doing() if fault is calm else found.fault(name, doing()))
    begun = loop.time()

    async def known() -> bool:
        for run in names:
            raw = await made.testbed.kube.get(RUN, run)
            status, answer = await made.testbed.call("GET", f"/v1/runs/{id_of(run)}")
            if not raw or raw["status"].get("phase") != "Succeeded" or status != 200:
                return False
            if answer["data"]["status"] != "succeeded":
                return False
        return True

    with contextlib.suppress(TimeoutError):
        await made.wait_for(known, found.end_seconds)
    return loop.time() - begun


async def through(directory, name: str, faults: dict[str, Fault]) -> None:
    """All faults, one after another, on one stage."""
    took: dict[str, float] = {}
    async with (
        stage(directory, repositories=False) as made,
        campaign(name, made.testbed, CONCURRENCY) as found,
    ):
        undisturbed = await disturbed(made, found, "nothing", calm)
        found.notes.append(f"undisturbed: all known {undisturbed:.1f} s after they were asked for")
        for kind, fault in faults.items():
            took[kind] = await disturbed(made, found, kind, fault)
            found.notes.append(f"{kind}: all known {took[kind]:.1f} s after its end")
    require_good(found.report)
    late = {kind: seconds for kind, seconds in took.items() if seconds > MOST + 2 * undisturbed}
    assert late == {}


@pytest.mark.nightly
async def test_stale_watches(tmp_path):
    """Slow: two faults of watches, each with a recovery."""
    await through(tmp_path, "test_stale_watches", STALE)


@pytest.mark.nightly
async def test_lossy_watches(tmp_path):
    """Slow: three faults of watches, each with a recovery."""
    await through(tmp_path, "test_lossy_watches", LOSSY)


@pytest.mark.campaign
async def test_storms(tmp_path):
    await through(tmp_path, "test_storms", STORMS)
