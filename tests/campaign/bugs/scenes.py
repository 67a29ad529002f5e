"""Scenes of the whole: runs through both processes, with the fault that shows what is missing.

Called by the catalogue of seeded bugs.
"""

import asyncio
import contextlib
from pathlib import Path

from crds.kinds import POD, RUN
from crds.names import id_of
from tests.campaign import ledger
from tests.campaign.bugs.pod_scenes import started
from tests.campaign.campaign import campaign
from tests.campaign.checks.checker import ACTIVE, BACKWARD, DOUBLED, Violation
from tests.campaign.proxy.call import ProxiedRequest
from tests.campaign.proxy.rule import DropEvents, ProxiedEvent, SlowRequests
from tests.campaign.proxy.server import apiserver_proxy
from tests.campaign.testbed import CampaignTestbed, open_testbed

LATE_SECONDS = 6.0
PLACES = 2
DECIDED_SECONDS = 40.0
"""From a controller's being back until it has made a pod, if it wants to."""
ROLLBACK_SECONDS = 60.0
END_SECONDS = 120


class BugCaught(Exception):
    """Enough was seen: what comes after need not be waited for."""


async def plain(directory: Path, tree: Path) -> list[Violation]:
    """One run by POST and one by kubectl, with a restart of the controller while they work."""
    unrequested: set[str] = set()
    with contextlib.suppress(BugCaught):
        async with open_testbed(directory, tree=tree) as testbed, campaign("plain", testbed) as found:
            await found.work.post({"events": 2, "sleep": 2})
            await found.work.apply([{"events": 2, "sleep": 2}])
            await found.fault("controller SIGKILL", testbed.controller.restart())
            names = {one.run for one in found.work.requested}
            for _ in range(END_SECONDS):
                if not await found.watcher.wait_ended(names, 1.0):
                    break
                if unrequested := set(ledger.starts(testbed.ledger.entries())) - names:
                    raise BugCaught
        return list(found.report.columns[0].violations)
    return [Violation(DOUBLED, name, "not requested") for name in sorted(unrequested)]


class DroppedRunEvents(DropEvents):
    """The controller learns of Runs from its lists only, and of pods immediately."""

    def event_delay(self, event: ProxiedEvent) -> float | None:
        return super().event_delay(event) if event.call.resource == "runs" else 0.0


async def late_news(directory: Path, tree: Path) -> list[Violation]:
    """Runs succeed, and the controller sees their pods end before their results."""
    lost = DroppedRunEvents()
    async with (
        apiserver_proxy(directory) as proxy,
        open_testbed(directory, tree=tree, kubeconfig=proxy.kubeconfig) as testbed,
        campaign("late_news", testbed) as found,
    ):
        proxy.rules.append(lost)
        for _ in range(3):
            await found.work.post({})
            await found.work.apply([{"sleep": 1}])
        await found.watcher.wait_ended({one.run for one in found.work.requested}, found.end_seconds)
        found.faults["events lost"] = lost.injected
    return list(found.report.columns[0].violations)


async def again(directory: Path, tree: Path) -> list[Violation]:
    """An ended Run is deleted and applied once more: the first execution stays what it was."""
    async with open_testbed(directory, tree=tree) as testbed:
        async with campaign("again", testbed) as found:
            [run] = await found.work.apply([{"events": 1}])
            await found.watcher.wait_ended({run}, found.end_seconds)
            raw = await testbed.kube.get(RUN, run)
            assert raw is not None
        before = await testbed.ask("GET", f"/v1/runs/{id_of(run)}")
        await testbed.kube.delete(RUN, run)
        await testbed.kube.create(RUN, {"metadata": {"name": run}, "spec": raw["spec"]})
        seen = set()
        async with asyncio.timeout(150):
            while True:
                now = await testbed.ask("GET", f"/v1/runs/{id_of(run)}")
                seen.add((now["status"], now["completed_at"]))
                other = await testbed.kube.get(RUN, run)
                if other is not None and other["status"].get("phase") in ("Succeeded", "Failed", "Canceled"):
                    break
                await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        now = await testbed.ask("GET", f"/v1/runs/{id_of(run)}")
        seen.add((now["status"], now["completed_at"]))
        wrong = seen - {(before["status"], before["completed_at"])}
        more = (
            [Violation(BACKWARD, run, f"{before['status']}, then {sorted(map(str, wrong))}")] if wrong else []
        )
    return [*found.report.columns[0].violations, *more]


def _reads_pods(call: ProxiedRequest) -> bool:
    counts = "crewyard.dev/project=" in call.query.get("labelSelector", "")
    return call.resource == "pods" and call.verb in ("get", "list") and not counts


async def crowd(directory: Path, tree: Path) -> list[Violation]:
    """Many runs for few places; the controller is killed, and hears of the pods late when it is back."""
    # All but the list of a project's pods, which is what the places are counted by.
    slow = SlowRequests(_reads_pods, LATE_SECONDS)
    async with (
        apiserver_proxy(directory) as proxy,
        open_testbed(directory, tree=tree, kubeconfig=proxy.kubeconfig, concurrency=PLACES) as testbed,
        campaign("crowd", testbed, PLACES) as found,
    ):
        # Those that hold the places talk: a silent crew counts until its last output at most.
        talking = {"events": 5000, "pause": 0.2}
        runs = await found.work.apply([*[talking] * PLACES, *[{"events": 10, "pause": 0.2}] * PLACES])
        holding = runs[:PLACES]
        for run in holding:
            await started(testbed, run)
        proxy.rules.append(slow)
        await found.fault("controller SIGKILL", testbed.controller.restart())
        with contextlib.suppress(TimeoutError):
            await _one_too_many(testbed)
        for run in holding:
            found.work.allow(run, "canceled")
            await testbed.ask("POST", f"/v1/runs/{id_of(run)}/cancel")
    return list(found.report.columns[0].violations)


async def _one_too_many(testbed: CampaignTestbed) -> None:
    """Wait until more crews have started than the plan has slots. Raises TimeoutError."""
    async with asyncio.timeout(DECIDED_SECONDS):
        while len((await testbed.kube.list(POD)).items) <= PLACES:
            await asyncio.sleep(0.2)
    async with asyncio.timeout(END_SECONDS):
        while len(ledger.starts(testbed.ledger.entries())) <= PLACES:
            await asyncio.sleep(0.2)


async def rollback(directory: Path, tree: Path) -> list[Violation]:
    """A rollback to the older of two deployments makes that one active."""
    async with open_testbed(directory, tree=tree, start=False) as testbed:
        await testbed.api.start()
        await testbed.create_project()
        await testbed.deploy("dep-later")
        await testbed.controller.start()
        await testbed.wait_active("dep-later")
        loop = asyncio.get_running_loop()
        end = loop.time() + ROLLBACK_SECONDS
        while loop.time() < end:
            status, _ = await testbed.call("POST", f"/v1/deployments/{id_of(testbed.deployment)}/rollback")
            if status == 200:
                break
            await asyncio.sleep(0.5)
        project = await testbed.ask("GET", f"/v1/projects/{testbed.project}")
        active = project["active_deployment_id"]
        right = active == id_of(testbed.deployment)
        return [] if right else [Violation(ACTIVE, "", f"{active} is active after the rollback")]
