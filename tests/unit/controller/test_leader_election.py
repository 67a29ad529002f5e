"""A candidate takes a Lease that is free, its own, or was not renewed for its duration."""

import asyncio

import pytest
from structlog.testing import capture_logs

from controller import leader_election
from controller.leader_election import LEASE_SECONDS, LeaderElection, LeadershipLost, may_take
from kube import errors


@pytest.mark.parametrize(
    ("spec", "unchanged_seconds", "taken"),
    [
        (None, 0.0, True),
        ({}, 0.0, True),
        ({"holderIdentity": ""}, 0.0, True),
        ({"holderIdentity": "a"}, 0.0, True),
        ({"holderIdentity": "b"}, LEASE_SECONDS - 0.1, False),
        ({"holderIdentity": "b"}, LEASE_SECONDS, True),
        ({"holderIdentity": "b", "leaseDurationSeconds": 15}, 14.9, False),
        ({"holderIdentity": "b", "leaseDurationSeconds": 15}, 15.0, True),
    ],
)
def test_lease_is_taken(spec, unchanged_seconds, taken):
    lease = {"metadata": {"name": "l"}, **({} if spec is None else {"spec": spec})}
    assert may_take(lease, "a", unchanged_seconds) is taken


class LeaseKube:
    """An apiserver with one Lease; each call takes one of `refusals`, while there are some.

    It carries out a write to answer `late`, and then does not answer.
    """

    def __init__(self):
        self.lease = {"metadata": {"name": "l", "resourceVersion": "1"}, "spec": {}}
        self.refusals = []
        self.writes = 0
        self.late = 0
        self.calls = []

    def refuse(self):
        if self.refusals:
            raise self.refusals.pop(0)

    async def get(self, kind, name):
        self.calls.append("get")
        self.refuse()
        return self.lease

    async def patch(self, kind, name, body):
        self.calls.append("patch")
        self.refuse()
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise CONFLICT
        self.writes += 1
        self.change(body["spec"])
        if self.late:
            self.late -= 1
            await asyncio.Event().wait()
        return self.lease

    def change(self, spec):
        version = int(self.lease["metadata"]["resourceVersion"]) + 1
        metadata = {**self.lease["metadata"], "resourceVersion": str(version)}
        self.lease = {"metadata": metadata, "spec": {**self.lease["spec"], **spec}}


FORBIDDEN = errors.KubeForbidden(403, "Forbidden", "leases is forbidden")
UNAUTHORIZED = errors.from_status(401, {"reason": "Unauthorized", "message": "Unauthorized"})
CONFLICT = errors.KubeConflict(409, "Conflict", "the object has been modified")


@pytest.mark.parametrize("refusal", [FORBIDDEN, UNAUTHORIZED])
async def test_a_right_that_is_missing_for_a_while_ends_no_candidate(monkeypatch, refusal):
    monkeypatch.setattr(leader_election, "RENEW_SECONDS", 0.001)
    kube = LeaseKube()
    election = LeaderElection(kube, "a")
    kube.refusals = [refusal, refusal]
    with capture_logs() as logs:
        async with asyncio.timeout(30):
            await election.acquire()
    assert [(log["event"], log["log_level"]) for log in logs[:2]] == [("lease not acquired", "warning")] * 2
    kube.refusals = [refusal, refusal]
    keeping = asyncio.create_task(election.keep())
    while kube.writes < 3 and not keeping.done():
        await asyncio.sleep(0.001)
    assert election.leading and not keeping.done()
    # Another candidate holds it: the write conflicts.
    kube.lease = {**kube.lease, "spec": {"holderIdentity": "b"}}
    kube.refusals = [CONFLICT]
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(30):
            await keeping


@pytest.fixture
async def late(monkeypatch):
    """Return a kube whose next renewal is not answered, its leader, and the task that keeps the Lease.

    The list of its calls also has the pauses of the leader.
    """
    sleep, kube = asyncio.sleep, LeaseKube()

    async def pause(seconds):
        if seconds:
            kube.calls.append("pause")
        await sleep(0)

    monkeypatch.setattr(leader_election, "LEASE_SECONDS", 0.05)
    election = LeaderElection(kube, "a")
    await election.acquire()
    kube.calls.clear()
    kube.late = 1
    monkeypatch.setattr(asyncio, "sleep", pause)
    keeping = asyncio.create_task(election.keep())
    yield kube, election, keeping
    keeping.cancel()


async def until(condition):
    """Wait until a condition holds, as the leader's pauses do."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


async def test_a_renewal_that_is_answered_too_late_is_followed_at_once(late):
    kube, election, _ = late
    await until(lambda: kube.writes >= 4)
    assert kube.calls[:6] == ["pause", "patch", "get", "patch", "pause", "patch"]
    assert election.leading


async def test_a_lease_that_another_took_meanwhile_is_not_written(late):
    kube, election, keeping = late
    await until(lambda: kube.writes == 2)
    kube.change({"holderIdentity": "b"})
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(30):
            await keeping
    assert (kube.lease["spec"]["holderIdentity"], kube.writes, election.leading) == ("b", 2, False)


async def test_a_lease_changed_between_look_and_renewal_is_looked_at_again(late):
    kube, _, keeping = late
    await until(lambda: kube.writes == 2)
    get = kube.get

    async def get_before_another_takes_it(kind, name):
        lease = await get(kind, name)
        kube.change({"holderIdentity": "b"})
        return lease

    kube.get = get_before_another_takes_it
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(30):
            await keeping
    assert (kube.calls[-3:], kube.writes) == (["get", "patch", "get"], 2)


async def test_a_leader_that_stops_while_a_renewal_has_no_answer_frees_the_lease(late):
    kube, election, keeping = late
    await until(lambda: kube.writes == 2)
    keeping.cancel()
    await election.release()
    assert kube.lease["spec"]["holderIdentity"] == ""
