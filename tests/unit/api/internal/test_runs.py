"""The internal API of run pods: claim, events, artifacts."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp.test_utils import TestServer

from api.store.index.claims.claims import ClaimRequest
from api.store.store import Store
from crds.installation_limits import InstallationLimits
from crds.limits import PlanLimits, Plans
from runner.crewyard_runtime.events import check
from tests.testbed import hostile_file_names
from tests.unit.api.internal.conftest import EARLIER_KEY, FakeObjects, Mint, Pods
from tests.unit.api.store import builders
from tests.unit.api.store.blobs.test_blobs import read_all

CLAIM = {"protocol": 1, "run_uid": "run-uid", "pod_uid": "pod", "nonce": "nonce"}
HOLDER = {"pod_uid": "pod", "nonce": "nonce"}
HOLDER_HEADERS = {"X-Crewyard-Pod": "pod", "X-Crewyard-Nonce": "nonce"}


async def call_api(pods: Pods, run: str, call: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
    async with pods.post(f"/internal/v1/runs/{run}/{call}", json=body, headers=headers) as response:
        return response.status, await response.json()


async def put_artifact(
    pods: Pods, run: str, name: str, data: bytes, headers: dict[str, str], **more: str
) -> tuple[int, Any]:
    sent = {"X-Crewyard-Sha256": hashlib.sha256(data).hexdigest(), **HOLDER_HEADERS, **headers, **more}
    address = f"/internal/v1/runs/{run}/artifacts/{name}"
    async with pods.put(address, data=data, headers=sent) as response:
        return response.status, await response.json()


async def test_a_grant_has_the_callers_span_without_a_collector(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.add_demo_project(store)
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    run = await builders.create_run(store, traceparent=parent)
    for _ in range(2):
        _, response = await call_api(pods, run, "claim", CLAIM, bearer(run))
        assert response["traceparent"] == parent


async def test_granted_claim_has_all_fields(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store, input={"topic": "ants"}, timeout="90s")
    status, response = await call_api(pods, run, "claim", CLAIM, bearer(run))
    started_at = response.pop("started_at")
    assert (status, response) == (
        200,
        {
            "state": "granted",
            "entrypoint": "main:kickoff",
            "framework": "python",
            "input": {"topic": "ants"},
            "timeout_seconds": 90,
            "ask_seconds": 86400,
            "deployment_id": "dep_a",
            "limits": {
                "event_bytes": 65536,
                "log_lines": 1000000,
                "artifacts": 1000,
                "artifact_bytes": 1073741824,
                "output_bytes": 32768,
            },
        },
    )
    status, repeated = await call_api(pods, run, "claim", CLAIM, bearer(run))
    assert (status, repeated) == (200, {**response, "started_at": started_at})
    status, other = await call_api(pods, run, "claim", {**CLAIM, "nonce": "second"}, bearer(run))
    assert (status, other["state"]) == (200, "refused")


@pytest.mark.parametrize(
    ("requested", "called"),
    [(None, "main:kickoff"), ("writer", "main:write"), ("editor", "editor"), ("other:thing", "other:thing")],
)
async def test_a_named_entrypoint_is_that_of_the_plan(
    pods: Pods, store: Store, bearer: Mint, requested: str | None, called: str
) -> None:
    await builders.add_demo_project(store)
    plan = {"entrypoint": "main:kickoff", "framework": "python", "entrypoints": {"writer": "main:write"}}
    await store.deployments.observe(builders.deployment(plan=plan))
    run = await builders.create_run(store, entrypoint=requested)
    _, response = await call_api(pods, run, "claim", CLAIM, bearer(run))
    assert response["entrypoint"] == called


@pytest.mark.parametrize(
    "limits",
    [
        InstallationLimits(
            run_seconds=60, run_max_seconds=80, event_bytes=4096, log_lines=1, artifacts=2, artifact_bytes=3,
            output_bytes=4,
        )
    ],
)  # fmt: skip
@pytest.mark.parametrize(("timeout", "seconds"), [(None, 60), ("90s", 80)])
async def test_installation_limits_are_sent_and_enforced(
    pods: Pods, store: Store, bearer: Mint, timeout: str | None, seconds: int
) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store, timeout=timeout)
    _, response = await call_api(pods, run, "claim", CLAIM, bearer(run))
    assert response["timeout_seconds"] == seconds
    assert response["limits"] == {
        "event_bytes": 4096,
        "log_lines": 1,
        "artifacts": 2,
        "artifact_bytes": 3,
        "output_bytes": 4,
    }
    assert (await put_artifact(pods, run, "a", b"1234", bearer(run)))[0] == 422
    event = {"seq": 1, "type": "note", "time": None, "data": {"text": "x" * 6000}}
    assert (await call_api(pods, run, "events", {**HOLDER, "events": [event]}, bearer(run)))[0] == 200
    [warning] = [one for one in (await store.events.read(run, 0, 10)).events if one.type == "log"]
    assert "more than 4096" in str(warning.data)
    result = {
        "outcome": "succeeded",
        "duration_ms": 1,
        "last_event": 1,
        "artifacts": {"count": 0, "bytes": 0},
    }
    status, error = await call_api(pods, run, "result", {**HOLDER, **result, "output": "long"}, bearer(run))
    assert (status, "larger than 4 bytes" in error["error"]) == (400, True)


@pytest.mark.parametrize(
    "plans",
    [
        Plans(
            {
                "free": PlanLimits(
                    60, 2, limits={"run_max_seconds": 50, "ask_max_seconds": 9, "artifact_bytes": 3}
                )
            }
        )
    ],
)
async def test_limits_of_the_plan_are_sent_and_enforced(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    _, response = await call_api(pods, run, "claim", CLAIM, bearer(run))
    assert (response["timeout_seconds"], response["ask_seconds"]) == (50, 9)
    assert (response["limits"]["artifact_bytes"], response["limits"]["artifacts"]) == (3, 1000)
    assert (await put_artifact(pods, run, "a", b"123", bearer(run)))[0] == 200
    assert (await put_artifact(pods, run, "b", b"1", bearer(run)))[0] == 422


async def test_repeated_grant_notifies_run_started(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    claim_request = ClaimRequest("run-uid", "pod", "nonce")
    assert not (await store.events.read(run, 0, 10)).events
    # The transaction was committed, but the first call failed.
    await store.claims.grant(run, claim_request, {"deployment_id": "dep_a"}, datetime.now(UTC))
    assert (await call_api(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "granted"
    assert [event.type for event in (await store.events.read(run, 0, 10)).events] == ["run.started"]


async def test_parallel_claims_grant_one(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)

    async def answered(nonce: str) -> str:
        while True:
            status, response = await call_api(pods, run, "claim", {**CLAIM, "nonce": nonce}, bearer(run))
            if status == 200:
                return str(response["state"])
            # On a slow machine some calls time out; retry like a runner.
            assert status == 503

    states = await asyncio.gather(*(answered(f"nonce-{number}") for number in range(200)))
    assert states.count("granted") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "another key that is long"},
        {"kind": "build"},
        {"namespace": "elsewhere"},
        {"expires": 1},
        {"name": "run-other"},
    ],
)
async def test_token_is_valid_only_for_its_run(
    pods: Pods, store: Store, bearer: Mint, wrong: dict[str, Any]
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    headers = bearer(**{"name": run, **wrong})
    for call, body in (("claim", CLAIM), ("events", {**HOLDER, "events": []}), ("result", HOLDER)):
        assert (await call_api(pods, run, call, body, headers))[0] == 401
        assert (await call_api(pods, run, call, body, {}))[0] == 401
    assert (await put_artifact(pods, run, "a", b"x", headers))[0] == 401


async def test_token_by_the_earlier_key_is_valid(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    answer = await call_api(pods, run, "claim", CLAIM, bearer(run, key=EARLIER_KEY))
    assert (answer[0], answer[1]["state"]) == (200, "granted")


async def test_token_of_earlier_run_with_same_name_is_refused(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    old = {**CLAIM, "run_uid": "old-uid"}
    assert (await call_api(pods, run, "claim", old, bearer(run, uid="old-uid")))[1]["state"] == "refused"
    assert (await call_api(pods, run, "claim", CLAIM, bearer(run, uid="old-uid")))[1]["state"] == "refused"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("canceled", (200, {"state": "refused", "reason": "the run was canceled"})),
        ("ended", (200, {"state": "refused", "reason": "the run has ended"})),
        ("deleted", (404, {"error": "run not found"})),
        ("recreated", (404, {"error": "run not found"})),
    ],
)
async def test_claim_reads_object_before_grant(
    pods: Pods, store: Store, bearer: Mint, objects: FakeObjects, change: str, expected: tuple[int, Any]
) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    metadata = {"name": run, "namespace": "crews", "uid": "run-uid", "resourceVersion": "900"}
    metadata["creationTimestamp"] = "2026-11-21T10:00:00Z"
    spec = {"project": "demo", "deployment": "dep-a"}
    changes: dict[str, dict[str, Any]] = {
        "canceled": {"spec": {**spec, "cancel": True}},
        "ended": {"status": {"phase": "Failed", "error": {"reason": "PodDeleted", "message": "m"}}},
        "deleted": {"metadata": {**metadata, "deletionTimestamp": "2026-11-21T10:00:00Z"}},
        "recreated": {"metadata": {**metadata, "uid": "another"}},
    }
    objects.overrides[run] = changes[change]
    assert await call_api(pods, run, "claim", CLAIM, bearer(run)) == expected
    assert await store.claims.get(run) is None


async def test_waiting_claim_makes_no_apiserver_call(
    pods: Pods, store: Store, bearer: Mint, objects: FakeObjects
) -> None:
    await builders.add_demo_project(store)
    holders = [await builders.claim_run(store) for _ in range(2)]
    run = await builders.create_run(store)
    for _ in range(3):
        assert (await call_api(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "wait"
    assert objects.run_reads == 0
    await store.run_writer.observe(builders.run(holders[0], "Succeeded"), builders.NOW)
    assert (await call_api(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "granted"
    assert objects.run_reads == 1


async def test_claim_is_granted_after_apiserver_outage(
    pods: Pods, store: Store, bearer: Mint, objects: FakeObjects
) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    objects.unavailable = True
    assert (await call_api(pods, run, "claim", CLAIM, bearer(run)))[0] == 503
    objects.unavailable = False
    assert (await call_api(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "granted"


async def test_claim_of_unknown_run_is_retried(pods: Pods, bearer: Mint, objects: FakeObjects) -> None:
    objects.unavailable = True
    status, response = await call_api(pods, "run-new", "claim", CLAIM, bearer("run-new"))
    assert (status, response) == (503, {"error": "the service is temporarily unavailable; try again"})


def make_event(seq: int, type_: str = "log", **data: Any) -> dict[str, Any]:
    return {"seq": seq, "type": type_, "time": "2026-11-21T10:00:02.000123Z", "data": data}


async def test_events_are_stored_once_with_run_id_and_timestamp(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    first = {
        **HOLDER,
        "events": [make_event(1, message="a"), make_event(2, "agent.started", agent="x", task="y")],
    }
    assert await call_api(pods, run, "events", first, bearer(run)) == (200, {"acknowledged": 2})
    more = {**HOLDER, "events": [make_event(2), make_event(3, message="c"), make_event(5)]}
    assert await call_api(pods, run, "events", more, bearer(run)) == (200, {"acknowledged": 3})
    page = await store.events.read(run, 1, 10)
    head = {"run_id": run.replace("-", "_", 1), "timestamp": "2026-11-21T10:00:02.000123Z"}
    assert [(event.id, event.type, event.data) for event in page.events] == [
        (2, "log", {**head, "message": "a"}),
        (3, "agent.started", {**head, "agent": "x", "task": "y"}),
        (4, "log", {**head, "message": "c"}),
    ]


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("run.completed", "the type run.completed is reserved for the service"),
        ("artifact", "the type artifact is reserved for the service"),
        ("No Type", "its type must be up to 64 letters, digits and . _ -"),
    ],
)
async def test_invalid_event_becomes_warning_with_its_number(
    pods: Pods, store: Store, bearer: Mint, type_: str, message: str
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    body = {**HOLDER, "events": [make_event(1, type_), make_event(2, run_id="forged", x="\ud800\x00 ")]}
    assert await call_api(pods, run, "events", body, bearer(run)) == (200, {"acknowledged": 2})
    dropped, stored = (await store.events.read(run, 1, 10)).events
    assert (dropped.type, dropped.data["message"]) == ("log", f"an event was dropped: {message}")
    assert (stored.data["run_id"], stored.data["x"]) == (run.replace("-", "_", 1), "\ud800\x00 ")


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        (1500, {"duration_ms": 1500}),
        *((value, {}) for value in (-1, 7 * 24 * 3_600_000 + 1, 2**64, 1.5, "1500", True, None, {"ms": 1})),
    ],
)
async def test_only_a_valid_duration_of_a_model_call_is_stored(
    pods: Pods, store: Store, bearer: Mint, said: Any, stored: dict[str, Any]
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    tokens = {"model": "small", "prompt_tokens": 7, "completion_tokens": 2}
    events = [
        make_event(1, "usage", **tokens, duration_ms=said),
        make_event(2, "progress", duration_ms=said),
    ]
    status, response = await call_api(pods, run, "events", {**HOLDER, "events": events}, bearer(run))
    assert (status, response) == (200, {"acknowledged": 2})
    usage, own = [dict(event.data) for event in (await store.events.read(run, 1, 10)).events]
    for data in (usage, own):
        del data["run_id"], data["timestamp"]
    assert usage == {**tokens, **stored}
    # What a type of the crew's own means by the name is its own.
    assert own == {"duration_ms": said}


async def test_too_deep_event_becomes_warning(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    deep = json.loads("[" * 300 + "]" * 300)
    body = json.dumps({**HOLDER, "events": [make_event(1, "step", a=deep), make_event(2, "step", a=[[1]])]})
    async with pods.post(f"/internal/v1/runs/{run}/events", data=body, headers=bearer(run)) as response:
        assert response.status == 200
    message, stored = (await store.events.read(run, 1, 10)).events
    assert (message.type, "200 levels" in message.data["message"], stored.data["a"]) == ("log", True, [[1]])


@pytest.mark.parametrize("type_", ["Report.Done", "2nd_draft", "_x", "runs.listed", "X" * 64])
async def test_all_types_of_crewyard_runtime_are_accepted(
    pods: Pods, store: Store, bearer: Mint, type_: str
) -> None:
    check(type_, {})
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    body = {**HOLDER, "events": [make_event(1, type_, done=1)]}
    assert await call_api(pods, run, "events", body, bearer(run)) == (200, {"acknowledged": 1})
    (stored,) = (await store.events.read(run, 1, 10)).events
    assert (stored.type, stored.data["done"]) == (type_, 1)


async def test_pod_without_claim_gets_409(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    other = {"pod_uid": "pod", "nonce": "other"}
    assert (await call_api(pods, run, "events", {**other, "events": []}, bearer(run)))[0] == 409
    assert (await put_artifact(pods, run, "a", b"x", bearer(run), **{"X-Crewyard-Nonce": "other"}))[0] == 409
    await store.run_writer.observe(builders.run(run, "Failed"), builders.NOW)
    assert (await call_api(pods, run, "events", {**HOLDER, "events": [make_event(1)]}, bearer(run)))[0] == 409
    assert (await put_artifact(pods, run, "a", b"x", bearer(run)))[0] == 409


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"pod_uid": 1}', b"[" * 100_000, b'{"pod_uid": "a", "nonce": "b", "events": [1]}'],
)
async def test_malformed_body_is_refused(pods: Pods, bearer: Mint, body: bytes) -> None:
    async with pods.post("/internal/v1/runs/run-a/events", data=body, headers=bearer("run-a")) as response:
        assert (response.status, list(await response.json())) == (400, ["error"])


async def test_artifact_event_once_per_version(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    name = "reports/a%20b%3F%25.md"
    headers = {**bearer(run), "Content-Type": "text/markdown"}
    for data in (b"one", b"one", b"two", b"two"):
        status, response = await put_artifact(pods, run, name, data, headers)
        assert (status, response["name"], response["size"]) == (200, "reports/a b?%.md", 3)
    page = await store.events.read(run, 1, 10)
    assert [(event.type, event.data["sha256"]) for event in page.events] == [
        ("artifact", hashlib.sha256(b"one").hexdigest()),
        ("artifact", hashlib.sha256(b"two").hexdigest()),
    ]
    row = await store.artifacts.get(run, "reports/a b?%.md")
    assert row is not None
    assert (row.content_type, row.partial) == ("text/markdown", False)
    assert b"".join([part async for part in store.blobs.read(row.blob)]) == b"two"


@pytest.mark.parametrize("name", ["../x", "a/../../x", "a//b", "%2Fetc", "a%00b", "a/", "x" * 1025])
async def test_hostile_artifact_name_is_refused(pods: Pods, store: Store, bearer: Mint, name: str) -> None:
    from yarl import URL

    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    address = URL(f"/internal/v1/runs/{run}/artifacts/{name}".replace("..", "%2E%2E"), encoded=True)
    sent = {"X-Crewyard-Sha256": hashlib.sha256(b"x").hexdigest(), **HOLDER_HEADERS, **bearer(run)}
    async with pods.put(address, data=b"x", headers=sent) as response:
        assert response.status == 422
    assert (await store.artifacts.page(run, 0, 10)).total == 0


@pytest.mark.parametrize("name", hostile_file_names.REPOSITORY)
async def test_artifact_inside_a_repository_directory_is_refused(
    pods: Pods, store: Store, bearer: Mint, name: str
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    status, response = await put_artifact(pods, run, quote(name), b"x", bearer(run))
    assert status == 422 and "version control" in response["error"]
    assert (await store.artifacts.page(run, 0, 10)).total == 0


@pytest.mark.parametrize("name", hostile_file_names.HARMLESS)
async def test_harmless_artifact_name_is_stored(pods: Pods, store: Store, bearer: Mint, name: str) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    status, response = await put_artifact(pods, run, quote(name), b"x", bearer(run))
    assert (status, response["name"]) == (200, name)


async def test_artifact_with_wrong_checksum_is_refused(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    status, _ = await put_artifact(pods, run, "a", b"x", bearer(run), **{"X-Crewyard-Sha256": "0" * 64})
    assert status == 400
    assert (await store.artifacts.page(run, 0, 10)).total == 0
    assert (await store.events.read(run, 1, 10)).events == ()


@pytest.mark.parametrize("limits", [InstallationLimits(artifacts=5)])
async def test_parallel_uploads_respect_artifact_limit(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    responses = await asyncio.gather(
        *(put_artifact(pods, run, f"{n}", b"same", bearer(run)) for n in range(9))
    )
    assert sorted(status for status, _ in responses) == [200] * 5 + [422] * 4
    page = await store.artifacts.page(run, 0, 10)
    assert [await read_all(store.blobs.read(row.blob)) for row in page.items] == [b"same"] * 5


class WaitingWriters:
    """Counts the calls that have stored the bytes of their file and wait for the run's log."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count, self._open_writer = 0, store.events.open_writer
        monkeypatch.setattr(store.events, "open_writer", self._open)

    def _open(self, run: str) -> Any:
        self._count += 1
        return self._open_writer(run)

    async def reach(self, count: int) -> None:
        async with asyncio.timeout(60):
            while self._count < count:
                await asyncio.sleep(0.01)


async def test_replacing_artifact_keeps_same_bytes_of_other_name(
    pods: Pods, store: Store, bearer: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    await put_artifact(pods, run, "a", b"first", bearer(run))
    async with store.events.open_writer(run):
        waiting = WaitingWriters(store, monkeypatch)
        changed = asyncio.create_task(put_artifact(pods, run, "a", b"second", bearer(run)))
        await waiting.reach(1)
        same = asyncio.create_task(put_artifact(pods, run, "b", b"first", bearer(run)))
        await waiting.reach(2)
    assert [(await changed)[0], (await same)[0]] == [200, 200]
    row = await store.artifacts.get(run, "b")
    assert row is not None and await read_all(store.blobs.read(row.blob)) == b"first"


async def test_a_version_whose_bytes_another_one_deleted_is_sent_again(
    pods: Pods, store: Store, bearer: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    await put_artifact(pods, run, "a", b"first", bearer(run))
    async with store.events.open_writer(run):
        waiting = WaitingWriters(store, monkeypatch)
        changed = asyncio.create_task(put_artifact(pods, run, "a", b"second", bearer(run)))
        await waiting.reach(1)
        # Its bytes arrive before the second version deletes those of the first: they are the same.
        restored = asyncio.create_task(put_artifact(pods, run, "a", b"first", bearer(run)))
        await waiting.reach(2)
    assert [(await changed)[0], (await restored)[0]] == [200, 503]
    assert (await put_artifact(pods, run, "a", b"first", bearer(run)))[0] == 200
    row = await store.artifacts.get(run, "a")
    assert row is not None and await read_all(store.blobs.read(row.blob)) == b"first"


def peers(pods: Pods) -> list[Any]:
    """Return the addresses of the clients whose connections the server has open."""
    assert isinstance(pods.server, TestServer) and pods.server.runner is not None
    server = pods.server.runner.server
    assert server is not None
    return [each.transport.get_extra_info("peername") for each in server.connections if each.transport]


async def test_aborted_upload_does_not_replace_newer_version(
    pods: Pods, store: Store, bearer: Mint, tmp_path: Path
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    old, new = b"old", b"newer"
    sent = {"Host": "x", "Content-Length": "3", "X-Crewyard-Sha256": hashlib.sha256(old).hexdigest()}
    head = [f"PUT /internal/v1/runs/{run}/artifacts/a HTTP/1.1"]
    head += [f"{name}: {value}" for name, value in {**sent, **HOLDER_HEADERS, **bearer(run)}.items()]
    blobs = tmp_path / "data" / "blobs" / "crews" / "runs" / run
    async with store.events.open_writer(run):
        _, writer = await asyncio.open_connection(pods.host, pods.port)
        writer.write("\r\n".join([*head, "", ""]).encode() + old)
        async with asyncio.timeout(60):
            while not list(blobs.glob(f"{sent['X-Crewyard-Sha256']}*")):
                await asyncio.sleep(0.01)
            address = writer.get_extra_info("sockname")
            writer.close()
            await writer.wait_closed()
            while address in peers(pods):
                await asyncio.sleep(0.01)
    assert (await put_artifact(pods, run, "a", new, bearer(run)))[0] == 200
    for _ in range(3):
        row = await store.artifacts.get(run, "a")
        assert row is not None and row.sha256 == hashlib.sha256(new).hexdigest()
        await asyncio.sleep(0.05)
    assert len((await store.events.read(run, 1, 10)).events) == 1
