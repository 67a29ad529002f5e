"""Scenes in which the test plays the pod: what a runner repeats, and what it may not be believed.

They need no controller and take seconds. Called by the catalogue of seeded bugs.
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from crds.kinds import PROJECT
from crds.names import id_of
from crds.times import format_time
from tests.campaign.bugs.fake_runner import FakeRunner
from tests.campaign.checker import ARTIFACTS, DOUBLED, EVENTS, LOST, Violation
from tests.campaign.testbed import CampaignTestbed, open_testbed


@contextlib.asynccontextmanager
async def _facade(directory: Path, tree: Path) -> AsyncIterator[CampaignTestbed]:
    async with open_testbed(directory, tree=tree, start=False) as mine:
        await mine.api.start()
        await mine.furnish()
        # There is no controller that says so.
        active = {"activeDeployment": mine.deployment, "activatedAt": format_time(datetime.now(UTC))}
        await mine.kube.patch(PROJECT, mine.project, {"status": active}, "status")
        await mine.active()
        yield mine


async def second_start(directory: Path, tree: Path) -> list[Violation]:
    """Another pod asks for the run, and the same pod once more, whose container the kubelet may start again.

    The facade is restarted in between.
    """
    async with _facade(directory, tree) as mine:
        pod = await FakeRunner.begin(mine)
        other = replace(pod, pod="another pod")
        answers = [await other.claims(pod.nonce), await pod.claims("another nonce")]
        await mine.api.restart()
        answers += [await other.claims("a nonce of its own"), await pod.claims("a third nonce")]
        same = await pod.claims(pod.nonce)
        granted = [answer for answer in answers if answer != "refused"]
        found = [Violation(DOUBLED, pod.run, f"another start was {answer}") for answer in granted]
        if same != "granted":
            found.append(Violation(LOST, pod.run, f"the one start was {same}"))
        return found


async def early_result(directory: Path, tree: Path) -> list[Violation]:
    """The pod reports a success with an artifact, and then an event, that nobody has."""
    async with _facade(directory, tree) as mine:
        pod = await FakeRunner.begin(mine)
        found = []
        if (status := await pod.reports(0, 1)) != 425:
            found.append(Violation(ARTIFACTS, pod.run, f"a result without its artifact got {status}"))
        elif (status := await pod.reports(1, 0)) != 425:
            found.append(Violation(EVENTS, pod.run, f"a result without its event got {status}"))
        return found


async def repeated_events(directory: Path, tree: Path) -> list[Violation]:
    """The pod sends events again, whose answer was lost; the facade is killed in between."""
    async with _facade(directory, tree) as mine:
        pod = await FakeRunner.begin(mine)
        await pod.says(1, 2, 3)
        await pod.says(1, 2, 3)
        await mine.api.restart()
        await pod.says(2, 3, 4, 5)
        path = f"/v1/runs/{id_of(pod.run)}/events"
        told = await mine.ask("GET", path, Accept="application/json")
        numbers = [event["data"]["number"] for event in told if event["type"] == "campaign.step"]
        wrong = sorted(numbers) != [1, 2, 3, 4, 5]
        return [Violation(EVENTS, pod.run, f"said 1 to 5, stored {numbers}")] if wrong else []
