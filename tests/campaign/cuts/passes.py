"""A scenario without a fault, then with a kill at each of its writes: each pass has the same final state.

Called by the tests of cut points. A pass that does not come to the cut, because a
slow machine wrote two things at once, is played again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tests.campaign.cuts import cluster_view
from tests.campaign.cuts.cluster_view import ClusterView
from tests.campaign.cuts.kill import KillRule
from tests.campaign.cuts.kill_point import KillPoint, points
from tests.campaign.cuts.scenario import Scenario
from tests.campaign.cuts.stage import CutStage

CONVERGE_SECONDS = 150.0
TRIES = 3


@dataclass
class BaselinePass:
    """The result of a scenario without a fault."""

    scenario: Scenario
    points: list[KillPoint]
    end: ClusterView
    event_reasons_seen: set[str]


@dataclass
class PassReport:
    """What the passes came to."""

    passes: int = 0
    kills: int = 0
    seconds: list[float] = field(default_factory=list)
    """From each kill until the end was seen."""
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "PassReport") -> None:
        """Add the figures of another report."""
        self.passes += other.passes
        self.kills += other.kills
        self.seconds += other.seconds
        self.missed += other.missed
        self.wrong += other.wrong


async def run_baseline(stage: CutStage, scenario: Scenario) -> BaselinePass:
    """Run it without a kill. Raises AssertionError if an essential write is missing."""
    before = len(stage.writes())
    marks = {process: len(count.calls) for process, count in stage.counts.items()}
    subject = await scenario.act(stage)
    await _wait_finished(stage, scenario, subject)
    await stage.wait_idle()
    seen = await scenario.view(stage, subject)
    assert len(stage.writes()) > before

    def written() -> list[KillPoint]:
        return points(
            (process, call)
            for process, count in stage.counts.items()
            for call, status in count.calls[marks[process] :]
            if call.writes and status < 400
        )

    with contextlib.suppress(TimeoutError):
        # Events are written by the way: they may come after a second without a write.
        await stage.wait_until(lambda: set(scenario.essential) <= {str(point) for point in written()})
    found = written()
    names = {str(point) for point in found}
    assert set(scenario.essential) <= names, (sorted(set(scenario.essential) - names), sorted(names))
    stage.subjects.append((scenario, subject, seen))
    return BaselinePass(scenario, found, seen, await cluster_view.event_reasons(stage.testbed, subject))


async def cut(stage: CutStage, base: BaselinePass, point: KillPoint, applied: bool) -> PassReport:
    """Run it with a kill at a point, before the write is done or (`applied`) after it."""
    report, loop = PassReport(passes=1), asyncio.get_running_loop()
    words = f"{base.scenario.name}, {point}, {'after' if applied else 'before'}"
    for _ in range(TRIES):
        kill = KillRule(stage.child(point.process), point, applied)
        async with _armed(stage, point.process, kill):
            subject = await base.scenario.act(stage)
            seen = await _wait_finished(stage, base.scenario, subject, kill)
            if kill.fired.is_set():
                killed = kill.at
                seen = await _wait_equal(stage, base, subject, seen)
                report.seconds.append(loop.time() - killed)
        await stage.wait_idle()
        stage.subjects.append((base.scenario, subject, seen))
        report.wrong += [f"{words}: {line}" for line in differences(base.end, seen)]
        news = (
            await cluster_view.event_reasons(stage.testbed, subject)
            - base.event_reasons_seen
            - base.scenario.detours
        )
        report.wrong += [
            f"{words}: an event {reason}, which nothing else tells of" for reason in sorted(news)
        ]
        if kill.fired.is_set():
            report.kills += 1
            print(f"{words}: over {report.seconds[-1]:.1f} s after the kill", flush=True)
            return report
    report.missed.append(words)
    return report


@contextlib.asynccontextmanager
async def _armed(stage: CutStage, process: str, kill: KillRule) -> AsyncIterator[None]:
    """The rule, and a task that restarts the process as the kubelet does."""
    proxy, child = stage.proxies[process], stage.child(process)
    proxy.rules.append(kill)

    async def revive() -> None:
        await kill.fired.wait()
        await child.kill()
        await child.start()

    reviving = asyncio.create_task(revive())
    try:
        yield
    finally:
        proxy.rules.remove(kill)
        if kill.fired.is_set():
            await reviving
        reviving.cancel()


async def _wait_finished(
    stage: CutStage, scenario: Scenario, subject: str, kill: KillRule | None = None
) -> ClusterView:
    """What is seen once it is over; a pass whose cut is behind the end waits for that a little."""
    loop = asyncio.get_running_loop()
    end = loop.time() + CONVERGE_SECONDS
    while True:
        seen = await _current_view(stage, scenario, subject)
        if seen and scenario.is_finished(seen):
            break
        if loop.time() > end:
            assert kill is not None and kill.fired.is_set(), f"{scenario.name} {subject} stayed {seen}"
            return seen
        await asyncio.sleep(0.2)
    if kill is not None and not kill.fired.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(kill.fired.wait(), 2.0)
    return seen


async def _wait_equal(stage: CutStage, base: BaselinePass, subject: str, seen: ClusterView) -> ClusterView:
    """What is seen once it is as it was undisturbed, or after the time for that."""
    end = asyncio.get_running_loop().time() + CONVERGE_SECONDS
    while differences(base.end, seen) and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.3)
        seen = await _current_view(stage, base.scenario, subject) or seen
    return seen


async def _current_view(stage: CutStage, scenario: Scenario, subject: str) -> ClusterView:
    """A sight; nothing while the api is away."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(120):
            return await scenario.view(stage, subject)
    return {}


def differences(expected: ClusterView, seen: ClusterView) -> list[str]:
    """The fields that differ, as words."""
    fields = sorted(set(expected) | set(seen))
    return [
        f"{field} is {seen.get(field)!r}, not {expected.get(field)!r}"
        for field in fields
        if expected.get(field) != seen.get(field)
    ]


async def later_changes(stage: CutStage) -> list[str]:
    """What of all that came to its end was changed by what came after it."""
    wrong: list[str] = []
    for scenario, subject, before in stage.subjects:
        if scenario.name in ("run", "cancel"):
            after: Any = await scenario.view(stage, subject)
            if after["object"] is None:
                # Pruned meanwhile.
                before = {**before, "object": None, "pods": [], "deployment": False}
            wrong += [f"{scenario.name} {subject}, later: {line}" for line in differences(before, after)]
    return wrong
