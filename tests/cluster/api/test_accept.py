"""An accepted run is one row and one object, even after crashes between the two writes."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.projection.recover import recover_all
from api.store.index.claims.claims import ClaimDenied, ClaimGranted, ClaimRequest
from api.store.index.idempotency import Idempotency
from api.store.index.runs.inputs import reference
from api.v1.runs.create import RunRequest, create_run, ensure_object
from crds.kinds import RUN
from kube import errors
from tests.cluster.api.conftest import StoreTestbed

REQUEST = RunRequest(
    "demo",
    "dep-a",
    {"topic": "ants", "deep": {"a": [1, None]}},
    "main:other",
    "90s",
    {"tags": ["a"]},
    {"model": "small"},
)
SETTLE_DELAY = timedelta(seconds=1)


def now() -> datetime:
    return datetime.now(UTC)


async def test_object_has_request_and_owner_reference(testbed: StoreTestbed) -> None:
    row = await create_run(testbed.store, testbed.kube, REQUEST, now())
    obj = await testbed.get(row.name)
    assert obj["spec"] == {
        "project": "demo",
        "deployment": "dep-a",
        "input": {"topic": "ants", "deep": {"a": [1, None]}},
        "entrypoint": "main:other",
        "timeout": "90s",
        "config": {"tags": ["a"]},
        "context": {"model": "small"},
    }
    assert obj["metadata"]["uid"] == row.uid
    assert [owner["uid"] for owner in obj["metadata"]["ownerReferences"]] == [
        testbed.project["metadata"]["uid"]
    ]


async def test_object_has_the_labels_of_the_request(testbed: StoreTestbed) -> None:
    request = RunRequest("demo", "dep-a", {}, labels={"team": "tides", "example.com/stage": ""})
    row = await create_run(testbed.store, testbed.kube, request, now())
    found = (await testbed.kube.list(RUN, "team=tides")).items
    assert [one["metadata"]["name"] for one in found] == [row.name]
    obj = await testbed.get(row.name)
    assert (
        obj["metadata"]["labels"].items()
        >= {
            "team": "tides",
            "example.com/stage": "",
            "crewyard.dev/project": "demo",
        }.items()
    )
    stored = await testbed.store.runs.get(row.name)
    assert stored is not None and stored.labels == request.labels


async def test_concurrent_requests_with_one_key_create_one_run(testbed: StoreTestbed) -> None:
    idempotency = Idempotency("key", "abc", "body")
    rows = await asyncio.gather(
        *(create_run(testbed.store, testbed.kube, REQUEST, now(), idempotency) for _ in range(10))
    )
    assert len({row.name for row in rows}) == 1
    assert len((await testbed.kube.list(RUN)).items) == 1


async def test_refused_object_leaves_no_run(testbed: StoreTestbed) -> None:
    with pytest.raises(errors.Invalid, match="entrypoint"):
        await create_run(testbed.store, testbed.kube, RunRequest("demo", "dep-a", {}, "no entrypoint"), now())
    assert (await testbed.store.runs.page(0, 10)).total == 0
    assert await testbed.store.runs.unsettled(now() + SETTLE_DELAY) == ([], [])


async def test_crash_after_the_row_is_recovered(testbed: StoreTestbed) -> None:
    name, _ = await testbed.store.runs.create(REQUEST, now(), None)
    await recover_all(testbed.store, testbed.kube, now() + SETTLE_DELAY)
    row = await testbed.store.runs.get(name)
    assert row is not None
    assert row.uid == (await testbed.get(name))["metadata"]["uid"]


async def test_crash_after_the_object_keeps_the_object(testbed: StoreTestbed) -> None:
    name, _ = await testbed.store.runs.create(REQUEST, now(), None)
    row = await testbed.store.runs.get(name)
    assert row is not None
    await ensure_object(testbed.store, testbed.kube, row, now())
    created = await testbed.get(name)
    before = (await testbed.kube.list(RUN)).items
    # As if the row had not received the uid.
    again = await ensure_object(testbed.store, testbed.kube, row, now())
    assert (await testbed.kube.list(RUN)).items == before
    assert [raw["metadata"]["uid"] for raw in before] == [again.uid]
    assert (await testbed.get(name))["metadata"] == created["metadata"]


async def test_withdrawn_run_with_object_is_deleted_unclaimed(
    testbed: StoreTestbed,
) -> None:
    name, _ = await testbed.store.runs.create(REQUEST, now(), None)
    row = await testbed.store.runs.get(name)
    assert row is not None
    await testbed.store.runs.withdraw(name, now(), object_absent=False)
    await ensure_object(testbed.store, testbed.kube, row, now())
    uid = (await testbed.get(name))["metadata"]["uid"]
    denied = await testbed.store.claims.grant(name, ClaimRequest(uid, "pod", "nonce"), {}, now())
    assert isinstance(denied, ClaimDenied)
    await recover_all(testbed.store, testbed.kube, now() + SETTLE_DELAY)
    assert await testbed.kube.get(RUN, name) is None


async def test_unreachable_apiserver_withdraws_unkeyed_run(
    testbed: StoreTestbed,
) -> None:
    from kubernetes.aio import client

    from kube.client import KubeClient

    unreachable = KubeClient(
        client.ApiClient(client.Configuration(host="http://127.0.0.1:9")), testbed.kube.namespace
    )
    idempotency = Idempotency("key", "abc", "body")
    try:
        with pytest.raises(errors.KubeUnavailable):
            await create_run(testbed.store, unreachable, REQUEST, now())
        assert (await testbed.store.runs.page(0, 10)).total == 0
        with pytest.raises(errors.KubeUnavailable):
            await create_run(testbed.store, unreachable, REQUEST, now(), idempotency)
    finally:
        await unreachable.close()
    row = await create_run(testbed.store, testbed.kube, REQUEST, now(), idempotency)
    assert (await testbed.store.runs.page(0, 10)).total == 1
    assert (await testbed.get(row.name))["metadata"]["uid"] == row.uid


async def test_large_input_is_stored_by_reference(testbed: StoreTestbed) -> None:
    value = {"text": "ä" * 400_000, "number": 2**70, "nothing": None}
    row = await create_run(testbed.store, testbed.kube, RunRequest("demo", "dep-a", value), now())
    obj = await testbed.get(row.name)
    assert "input" not in obj["spec"]
    assert obj["spec"]["inputRef"] == reference(value, testbed.store.limits.input_inline_bytes)
    request = ClaimRequest(obj["metadata"]["uid"], "pod", "nonce")
    claim = await testbed.store.claims.grant(row.name, request, {}, now())
    assert isinstance(claim, ClaimGranted) and claim.input == value


@pytest.mark.parametrize(
    "value",
    [
        {"big": 2**53 + 1, "bigger": 2**63 - 1, "small": -(2**63)},
        {"huge": 2**64 + 1, "least": -(10**30)},
        {"whole": 1.0, "far": 1e20, "farther": 1e300, "tiny": 1e-300, "none": None, "minus": -0.0},
        {"text": "\x00\x7f\u2028 \U0001f600", "": [[], {}, {"": None}]},
    ],
)
async def test_created_object_matches_any_input(testbed: StoreTestbed, value: dict[str, Any]) -> None:
    name, _ = await testbed.store.runs.create(RunRequest("demo", "dep-a", value), now(), None)
    row = await testbed.store.runs.get(name)
    assert row is not None
    await ensure_object(testbed.store, testbed.kube, row, now())
    await testbed.kube.patch(RUN, name, {"spec": {"cancel": True}})
    # As if the row had not received the uid.
    await ensure_object(testbed.store, testbed.kube, row, now())
