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
    """An apiserver with one Lease; each call takes one of `refusals`, while there are some."""

    def __init__(self):
        self.lease = {"metadata": {"name": "l", "resourceVersion": "1"}, "spec": {}}
        self.refusals = []
        self.writes = 0

    def refuse(self):
        if self.refusals:
            raise self.refusals.pop(0)

    async def get(self, kind, name):
        self.refuse()
        return self.lease

    async def patch(self, kind, name, body):
        self.refuse()
        self.writes += 1
        self.lease = {**self.lease, "spec": {**self.lease["spec"], **body["spec"]}}
        return self.lease


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
