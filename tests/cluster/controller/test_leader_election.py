"""Two candidates of one Lease: one leads, the other follows it."""

import asyncio
import contextlib

import pytest

from controller import leader_election
from controller.leader_election import (
    LEASE_NAME,
    LEASE_SECONDS,
    RENEW_SECONDS,
    LeaderElection,
    LeadershipLost,
)
from crds.kinds import LEASE
from crds.times import parse_time
from kube import errors

RENEWED_LEASE_SECONDS = 12


async def holder(kube):
    lease = await kube.get(LEASE, LEASE_NAME)
    return lease["spec"].get("holderIdentity")


async def test_standby_leads_once_the_leader_released(kube, monkeypatch):
    # So long that a slow renewal is early enough.
    monkeypatch.setattr(leader_election, "LEASE_SECONDS", RENEWED_LEASE_SECONDS)
    first, second = LeaderElection(kube, "a"), LeaderElection(kube, "b")
    await first.acquire()
    assert first.leading and await holder(kube) == "a"
    waiting, renewing = asyncio.create_task(second.acquire()), asyncio.create_task(first.keep())
    # Longer than the Lease lasts: the leader renews it.
    acquired = renewed = parse_time((await kube.get(LEASE, LEASE_NAME))["spec"]["renewTime"])
    async with asyncio.timeout(300):
        while (renewed - acquired).total_seconds() <= RENEWED_LEASE_SECONDS:
            await asyncio.sleep(0.1)
            renewed = parse_time((await kube.get(LEASE, LEASE_NAME))["spec"]["renewTime"])
    assert not waiting.done() and not second.leading
    renewing.cancel()
    await first.release()
    await asyncio.wait_for(waiting, 300)
    assert second.leading and not first.leading and await holder(kube) == "b"


async def test_standby_leads_once_the_leader_renews_no_more(kube):
    first, second = LeaderElection(kube, "a"), LeaderElection(kube, "b")
    await first.acquire()
    await asyncio.wait_for(second.acquire(), 300)
    assert await holder(kube) == "b"
    lease = await kube.get(LEASE, LEASE_NAME)
    assert lease["spec"]["leaseTransitions"] == 2
    # The old leader comes back and finds out.
    with pytest.raises(LeadershipLost, match="held by b"):
        await asyncio.wait_for(first.keep(), 300)
    assert not first.leading
    await first.release()
    assert await holder(kube) == "b"


async def test_restarted_candidate_of_the_same_identity_leads_immediately(kube):
    await LeaderElection(kube, "a").acquire()
    again = LeaderElection(kube, "a")
    async with asyncio.timeout(300):
        await again.acquire()
    assert again.leading


async def test_many_candidates_elect_one(kube, monkeypatch):
    # The leader renews nothing.
    monkeypatch.setattr(leader_election, "LEASE_SECONDS", 600)
    candidates = [LeaderElection(kube, f"candidate-{number}") for number in range(8)]
    tasks = [asyncio.create_task(candidate.acquire()) for candidate in candidates]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    [leader] = [candidate for candidate in candidates if candidate.leading]
    assert await holder(kube) == f"candidate-{candidates.index(leader)}"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Unreachable:
    """A client whose calls fail while it is `away`."""

    def __init__(self, kube):
        self._kube, self.away, self.refused = kube, False, 0

    def __getattr__(self, name):
        if self.away:
            self.refused += 1
            raise errors.KubeUnavailable(0, "Unreachable", "the apiserver cannot be reached")
        return getattr(self._kube, name)


async def test_leader_without_apiserver_leads_until_another_one_does(kube):
    client = Unreachable(kube)
    election = LeaderElection(client, "a")
    await election.acquire()
    renewing = asyncio.create_task(election.keep())
    client.away = True
    async with asyncio.timeout(300):
        while client.refused * RENEW_SECONDS <= LEASE_SECONDS:
            await asyncio.sleep(0.1)
    client.away = False
    before = (await kube.get(LEASE, LEASE_NAME))["spec"]["renewTime"]
    async with asyncio.timeout(300):
        while (await kube.get(LEASE, LEASE_NAME))["spec"]["renewTime"] == before:
            await asyncio.sleep(0.1)
    assert election.leading and not renewing.done()
    renewing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await renewing
