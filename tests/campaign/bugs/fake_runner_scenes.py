"""Scenes with a simulated pod: repeated calls, and false reports.

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
from tests.campaign.checks.checker import ARTIFACTS, DOUBLED, EVENTS, LOST, Violation
from tests.campaign.testbed import CampaignTestbed, open_testbed


@contextlib.asynccontextmanager
async def _api_server(directory: Path, tree: Path) -> AsyncIterator[CampaignTestbed]:
    async with open_testbed(directory, tree=tree, start=False) as testbed:
        await testbed.api.start()
        await testbed.create_project()
        # There is no controller that says so.
        active = {"activeDeployment": testbed.deployment, "activatedAt": format_time(datetime.now(UTC))}
        await testbed.kube.patch(PROJECT, testbed.project, {"status": active}, "status")
        await testbed.wait_active()
        yield testbed


async def second_start(directory: Path, tree: Path) -> list[Violation]:
    """Another pod asks for the run, and the same pod once more, whose container the kubelet may start again.

    The API server is restarted in between.
    """
    async with _api_server(directory, tree) as testbed:
        pod = await FakeRunner.create(testbed)
        other = replace(pod, pod="another pod")
        answers = [await other.claim(pod.nonce), await pod.claim("another nonce")]
        await testbed.api.restart()
        answers += [await other.claim("a nonce of its own"), await pod.claim("a third nonce")]
        same = await pod.claim(pod.nonce)
        granted = [answer for answer in answers if answer != "refused"]
        found = [Violation(DOUBLED, pod.run, f"another start was {answer}") for answer in granted]
        if same != "granted":
            found.append(Violation(LOST, pod.run, f"the one start was {same}"))
        return found


async def early_result(directory: Path, tree: Path) -> list[Violation]:
    """The pod reports a success with an artifact, then with an event, that was never sent."""
    async with _api_server(directory, tree) as testbed:
        pod = await FakeRunner.create(testbed)
        found = []
        if (status := await pod.post_result(0, 1)) != 425:
            found.append(Violation(ARTIFACTS, pod.run, f"a result without its artifact got {status}"))
        elif (status := await pod.post_result(1, 0)) != 425:
            found.append(Violation(EVENTS, pod.run, f"a result without its event got {status}"))
        return found


async def repeated_events(directory: Path, tree: Path) -> list[Violation]:
    """The pod repeats events after a lost response; the API server is killed between the calls."""
    async with _api_server(directory, tree) as testbed:
        pod = await FakeRunner.create(testbed)
        await pod.post_events(1, 2, 3)
        await pod.post_events(1, 2, 3)
        await testbed.api.restart()
        await pod.post_events(2, 3, 4, 5)
        path = f"/v1/runs/{id_of(pod.run)}/events"
        stored = await testbed.ask("GET", path, Accept="application/json")
        numbers = [event["data"]["number"] for event in stored if event["type"] == "campaign.step"]
        wrong = sorted(numbers) != [1, 2, 3, 4, 5]
        return [Violation(EVENTS, pod.run, f"sent 1 to 5, stored {numbers}")] if wrong else []
