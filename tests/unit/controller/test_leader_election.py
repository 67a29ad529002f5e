"""A candidate takes a Lease that is free, its own, or was not renewed for its duration."""

import pytest

from controller.leader_election import LEASE_SECONDS, may_take


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
