"""Scenes about the one pod of a run: a second pod, and a pod that is deleted while its crew works.

Called by the catalogue of seeded bugs.
"""

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import Any

from crds.kinds import POD
from kube import errors
from tests.campaign import ledger
from tests.campaign.campaign import campaign
from tests.campaign.checks.checker import Violation
from tests.campaign.pods import kill_runner
from tests.campaign.testbed import CampaignTestbed, open_testbed

WAIT_SECONDS = 150.0
LONG = {"events": 1, "sleep": 6}


async def started(testbed: CampaignTestbed, run: str) -> None:
    """Wait until the crew has reported its start. Raises TimeoutError."""
    async with asyncio.timeout(WAIT_SECONDS):
        while run not in ledger.starts(testbed.ledger.entries()):
            await asyncio.sleep(0.1)


def _copy(raw: dict[str, Any]) -> dict[str, Any]:
    """A pod like that one, under another name."""
    metadata = raw["metadata"]
    spec = {key: value for key, value in raw["spec"].items() if key != "nodeName"}
    kept = {key: metadata[key] for key in ("labels", "ownerReferences") if key in metadata}
    # One owner only may control a pod; that it is owned is enough.
    return {
        "metadata": {**kept, "name": f"{metadata['name']}-2"},
        "spec": {**spec, "hostname": metadata["name"]},
    }


async def second_pod(directory: Path, tree: Path) -> list[Violation]:
    """A second pod of the run, with all that the first one has: the claim is what keeps it from starting."""
    async with open_testbed(directory, tree=tree) as testbed, campaign("second_pod", testbed) as found:
        run = await found.work.post(LONG)
        await started(testbed, run)
        raw = await testbed.kube.get(POD, run)
        assert raw is not None
        made = _copy(raw)
        await found.fault("second pod", testbed.kube.create(POD, made))
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                other = await testbed.kube.get(POD, made["metadata"]["name"])
                if other is None or other["status"].get("phase") in ("Succeeded", "Failed"):
                    break
                await asyncio.sleep(0.2)
        await testbed.kube.delete(POD, made["metadata"]["name"], grace_seconds=0)
    return list(found.report.columns[0].violations)


async def deleted_pod(directory: Path, tree: Path) -> list[Violation]:
    """The pod is deleted without grace while its crew works: the run fails with the reason."""
    async with open_testbed(directory, tree=tree) as testbed, campaign("deleted_pod", testbed) as found:
        run = await found.work.post({"sleep": 3600}, ("failed:PodDeleted",))
        await started(testbed, run)
        raw = await testbed.kube.get(POD, run)
        assert raw is not None
        # Halted, so that it cannot report that it was stopped before the next pod has started.
        assert kill_runner(raw["metadata"]["uid"], signal.SIGSTOP), "the pods' processes are elsewhere"
        # This very one: where the answer comes late the client asks again.
        deletion = testbed.kube.delete(POD, run, grace_seconds=0, uid=raw["metadata"]["uid"])
        with contextlib.suppress(errors.KubeConflict):
            await found.fault("pod deleted", deletion)
    return list(found.report.columns[0].violations)
