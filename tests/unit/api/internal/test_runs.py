"""What a run pod is answered: claim, events, artifacts."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.store.index.claims.claims import ClaimRequest
from api.store.store import Store
from crds.installation_limits import InstallationLimits
from runner.crewyard_runtime.events import check
from tests.unit.api.internal.conftest import Mint, Objects, Pods
from tests.unit.api.store import builders
from tests.unit.api.store.blobs.test_blobs import whole

CLAIM = {"protocol": 1, "run_uid": "run-uid", "pod_uid": "pod", "nonce": "nonce"}
HOLDER = {"pod_uid": "pod", "nonce": "nonce"}
WHO = {"X-Crewyard-Pod": "pod", "X-Crewyard-Nonce": "nonce"}


async def ask(pods: Pods, run: str, call: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
    async with pods.post(f"/internal/v1/runs/{run}/{call}", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def put(
    pods: Pods, run: str, name: str, data: bytes, headers: dict[str, str], **more: str
) -> tuple[int, Any]:
    sent = {"X-Crewyard-Sha256": hashlib.sha256(data).hexdigest(), **WHO, **headers, **more}
    address = f"/internal/v1/runs/{run}/artifacts/{name}"
    async with pods.put(address, data=data, headers=sent) as answer:
        return answer.status, await answer.json()


async def test_a_claim_is_granted_with_all_the_runner_needs(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.yard(store)
    run = await builders.accepted(store, input={"topic": "ants"}, timeout="90s")
    status, answer = await ask(pods, run, "claim", CLAIM, bearer(run))
    started_at = answer.pop("started_at")
    assert (status, answer) == (
        200,
        {
            "state": "granted",
            "entrypoint": "main:kickoff",
            "framework": "python",
            "input": {"topic": "ants"},
            "timeout_seconds": 90,
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
    status, again = await ask(pods, run, "claim", CLAIM, bearer(run))
    assert (status, again) == (200, {**answer, "started_at": started_at})
    status, other = await ask(pods, run, "claim", {**CLAIM, "nonce": "second"}, bearer(run))
    assert (status, other["state"]) == (200, "refused")


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
async def test_a_pod_is_told_the_installations_own_limits_and_held_to_them(
    pods: Pods, store: Store, bearer: Mint, timeout: str | None, seconds: int
) -> None:
    await builders.yard(store)
    run = await builders.accepted(store, timeout=timeout)
    _, answer = await ask(pods, run, "claim", CLAIM, bearer(run))
    assert answer["timeout_seconds"] == seconds
    assert answer["limits"] == {
        "event_bytes": 4096,
        "log_lines": 1,
        "artifacts": 2,
        "artifact_bytes": 3,
        "output_bytes": 4,
    }
    assert (await put(pods, run, "a", b"1234", bearer(run)))[0] == 422
    event = {"seq": 1, "type": "note", "time": None, "data": {"text": "x" * 6000}}
    assert (await ask(pods, run, "events", {**HOLDER, "events": [event]}, bearer(run)))[0] == 200
    [said] = [one for one in (await store.events.read(run, 0, 10)).events if one.type == "log"]
    assert "more than 4096" in str(said.data)
    held = {"outcome": "succeeded", "duration_ms": 1, "last_event": 1, "artifacts": {"count": 0, "bytes": 0}}
    status, said_no = await ask(pods, run, "result", {**HOLDER, **held, "output": "long"}, bearer(run))
    assert (status, "larger than 4 bytes" in said_no["error"]) == (400, True)


async def test_a_grant_that_was_made_and_not_told_is_shown_once_it_is_told_again(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)
    asked = ClaimRequest("run-uid", "pod", "nonce")
    assert not (await store.events.read(run, 0, 10)).events
    # The transaction was made, and the one who asked for it got an error.
    await store.claims.grant(run, asked, {"deployment_id": "dep_a"}, datetime.now(UTC))
    assert (await ask(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "granted"
    assert [event.type for event in (await store.events.read(run, 0, 10)).events] == ["run.started"]


async def test_200_claims_at_once_grant_one(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)

    async def answered(nonce: str) -> str:
        while True:
            status, answer = await ask(pods, run, "claim", {**CLAIM, "nonce": nonce}, bearer(run))
            if status == 200:
                return str(answer["state"])
            # A slow machine may let some of so many wait too long: as a runner, it asks again.
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
async def test_a_token_opens_only_its_own_run(
    pods: Pods, store: Store, bearer: Mint, wrong: dict[str, Any]
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    headers = bearer(**{"name": run, **wrong})
    for call, body in (("claim", CLAIM), ("events", {**HOLDER, "events": []}), ("result", HOLDER)):
        assert (await ask(pods, run, call, body, headers))[0] == 401
        assert (await ask(pods, run, call, body, {}))[0] == 401
    assert (await put(pods, run, "a", b"x", headers))[0] == 401


async def test_a_token_of_an_earlier_run_of_the_name_is_refused(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)
    old = {**CLAIM, "run_uid": "old-uid"}
    assert (await ask(pods, run, "claim", old, bearer(run, uid="old-uid")))[1]["state"] == "refused"
    assert (await ask(pods, run, "claim", CLAIM, bearer(run, uid="old-uid")))[1]["state"] == "refused"


@pytest.mark.parametrize("way", ["canceled", "ended", "deleted", "made anew"])
async def test_what_the_watch_has_not_told_yet_is_seen_before_a_grant(
    pods: Pods, store: Store, bearer: Mint, objects: Objects, way: str
) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)
    metadata = {"name": run, "namespace": "crews", "uid": "run-uid", "resourceVersion": "900"}
    metadata["creationTimestamp"] = "2026-11-21T10:00:00Z"
    spec = {"project": "demo", "deployment": "dep-a"}
    changes: dict[str, dict[str, Any]] = {
        "canceled": {"spec": {**spec, "cancel": True}},
        "ended": {"status": {"phase": "Failed", "error": {"reason": "PodDeleted", "message": "m"}}},
        "deleted": {"metadata": {**metadata, "deletionTimestamp": "2026-11-21T10:00:00Z"}},
        "made anew": {"metadata": {**metadata, "uid": "another"}},
    }
    objects.changed[run] = changes[way]
    status, answer = await ask(pods, run, "claim", CLAIM, bearer(run))
    assert status == 404 or (status, answer["state"]) == (200, "refused")
    assert await store.claims.get(run) is None


async def test_a_pod_that_waits_for_a_place_costs_the_apiserver_nothing(
    pods: Pods, store: Store, bearer: Mint, objects: Objects
) -> None:
    await builders.yard(store)
    holders = [await builders.claimed(store) for _ in range(2)]
    run = await builders.accepted(store)
    for _ in range(3):
        assert (await ask(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "wait"
    assert objects.looks == 0
    await store.run_writer.observe(builders.run(holders[0], "Succeeded"), builders.NOW)
    assert (await ask(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "granted"
    assert objects.looks == 1


async def test_without_the_apiserver_a_claim_is_asked_again_and_then_granted(
    pods: Pods, store: Store, bearer: Mint, objects: Objects
) -> None:
    await builders.yard(store)
    run = await builders.accepted(store)
    objects.away = True
    assert (await ask(pods, run, "claim", CLAIM, bearer(run)))[0] == 503
    objects.away = False
    assert (await ask(pods, run, "claim", CLAIM, bearer(run)))[1]["state"] == "granted"


async def test_a_run_that_nobody_knows_yet_is_asked_for_again(
    pods: Pods, bearer: Mint, objects: Objects
) -> None:
    objects.away = True
    status, answer = await ask(pods, "run-new", "claim", CLAIM, bearer("run-new"))
    assert (status, answer) == (503, {"error": "the service is temporarily unavailable; try again"})


def event(seq: int, type_: str = "log", **data: Any) -> dict[str, Any]:
    return {"seq": seq, "type": type_, "time": "2026-11-21T10:00:02.000123Z", "data": data}


async def test_events_are_acknowledged_stored_once_and_completed(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    first = {**HOLDER, "events": [event(1, message="a"), event(2, "agent.started", agent="x", task="y")]}
    assert await ask(pods, run, "events", first, bearer(run)) == (200, {"acknowledged": 2})
    more = {**HOLDER, "events": [event(2), event(3, message="c"), event(5)]}
    assert await ask(pods, run, "events", more, bearer(run)) == (200, {"acknowledged": 3})
    page = await store.events.read(run, 1, 10)
    head = {"run_id": run.replace("-", "_", 1), "timestamp": "2026-11-21T10:00:02.000123Z"}
    assert [(found.id, found.type, found.data) for found in page.events] == [
        (2, "log", {**head, "message": "a"}),
        (3, "agent.started", {**head, "agent": "x", "task": "y"}),
        (4, "log", {**head, "message": "c"}),
    ]


@pytest.mark.parametrize(
    ("type_", "told"),
    [
        ("run.completed", "the type run.completed is reserved for the service"),
        ("artifact", "the type artifact is reserved for the service"),
        ("No Type", "its type must be up to 64 letters, digits and . _ -"),
    ],
)
async def test_an_event_that_may_not_be_is_told_and_keeps_its_number(
    pods: Pods, store: Store, bearer: Mint, type_: str, told: str
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    body = {**HOLDER, "events": [event(1, type_), event(2, run_id="forged", x="\ud800\x00 ")]}
    assert await ask(pods, run, "events", body, bearer(run)) == (200, {"acknowledged": 2})
    dropped, kept = (await store.events.read(run, 1, 10)).events
    assert (dropped.type, dropped.data["message"]) == ("log", f"an event was dropped: {told}")
    assert (kept.data["run_id"], kept.data["x"]) == (run.replace("-", "_", 1), "\ud800\x00 ")


async def test_an_event_nested_too_deeply_to_be_read_back_is_told(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    deep = json.loads("[" * 930 + "]" * 930)
    body = json.dumps({**HOLDER, "events": [event(1, "step", a=deep), event(2, "step", a=[[1]])]})
    async with pods.post(f"/internal/v1/runs/{run}/events", data=body, headers=bearer(run)) as answer:
        assert answer.status == 200
    told, kept = (await store.events.read(run, 1, 10)).events
    assert (told.type, "200 levels" in told.data["message"], kept.data["a"]) == ("log", True, [[1]])


@pytest.mark.parametrize("type_", ["Report.Done", "2nd_draft", "_x", "runs.listed", "X" * 64])
async def test_whatever_type_a_crew_may_emit_is_kept(
    pods: Pods, store: Store, bearer: Mint, type_: str
) -> None:
    check(type_, {})
    await builders.yard(store)
    run = await builders.claimed(store)
    body = {**HOLDER, "events": [event(1, type_, done=1)]}
    assert await ask(pods, run, "events", body, bearer(run)) == (200, {"acknowledged": 1})
    (kept,) = (await store.events.read(run, 1, 10)).events
    assert (kept.type, kept.data["done"]) == (type_, 1)


async def test_a_pod_that_does_not_hold_the_run_is_told_so(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    other = {"pod_uid": "pod", "nonce": "other"}
    assert (await ask(pods, run, "events", {**other, "events": []}, bearer(run)))[0] == 409
    assert (await put(pods, run, "a", b"x", bearer(run), **{"X-Crewyard-Nonce": "other"}))[0] == 409
    await store.run_writer.observe(builders.run(run, "Failed"), builders.NOW)
    assert (await ask(pods, run, "events", {**HOLDER, "events": [event(1)]}, bearer(run)))[0] == 409
    assert (await put(pods, run, "a", b"x", bearer(run)))[0] == 409


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"pod_uid": 1}', b"[" * 100_000, b'{"pod_uid": "a", "nonce": "b", "events": [1]}'],
)
async def test_a_malformed_body_is_refused(pods: Pods, bearer: Mint, body: bytes) -> None:
    async with pods.post("/internal/v1/runs/run-a/events", data=body, headers=bearer("run-a")) as answer:
        assert (answer.status, list(await answer.json())) == (400, ["error"])


async def test_an_artifact_is_stored_and_told_once_per_version(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    name = "reports/a%20b%3F%25.md"
    headers = {**bearer(run), "Content-Type": "text/markdown"}
    for data in (b"one", b"one", b"two", b"two"):
        status, answer = await put(pods, run, name, data, headers)
        assert (status, answer["name"], answer["size"]) == (200, "reports/a b?%.md", 3)
    page = await store.events.read(run, 1, 10)
    assert [(found.type, found.data["sha256"]) for found in page.events] == [
        ("artifact", hashlib.sha256(b"one").hexdigest()),
        ("artifact", hashlib.sha256(b"two").hexdigest()),
    ]
    row = await store.artifacts.get(run, "reports/a b?%.md")
    assert row is not None
    assert (row.content_type, row.partial) == ("text/markdown", False)
    assert b"".join([part async for part in store.blobs.read(row.blob)]) == b"two"


@pytest.mark.parametrize("name", ["../x", "a/../../x", "a//b", "%2Fetc", "a%00b", "a/", "x" * 1025])
async def test_a_hostile_name_is_refused_for_good(pods: Pods, store: Store, bearer: Mint, name: str) -> None:
    from yarl import URL

    await builders.yard(store)
    run = await builders.claimed(store)
    address = URL(f"/internal/v1/runs/{run}/artifacts/{name}".replace("..", "%2E%2E"), encoded=True)
    sent = {"X-Crewyard-Sha256": hashlib.sha256(b"x").hexdigest(), **WHO, **bearer(run)}
    async with pods.put(address, data=b"x", headers=sent) as answer:
        assert answer.status == 422
    assert (await store.artifacts.page(run, 0, 10)).total == 0


async def test_wrong_bytes_are_not_an_artifact(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    status, _ = await put(pods, run, "a", b"x", bearer(run), **{"X-Crewyard-Sha256": "0" * 64})
    assert status == 400
    assert (await store.artifacts.page(run, 0, 10)).total == 0
    assert (await store.events.read(run, 1, 10)).events == ()


@pytest.mark.parametrize("limits", [InstallationLimits(artifacts=5)])
async def test_files_sent_at_once_are_all_there_and_never_more_than_a_run_keeps(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    answers = await asyncio.gather(*(put(pods, run, f"{n}", b"same", bearer(run)) for n in range(9)))
    assert sorted(status for status, _ in answers) == [200] * 5 + [422] * 4
    page = await store.artifacts.page(run, 0, 10)
    assert [await whole(store.blobs.read(row.blob)) for row in page.items] == [b"same"] * 5


async def test_bytes_that_another_file_gives_up_meanwhile_are_kept(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    await put(pods, run, "a", b"first", bearer(run))
    async with store.events.open_writer(run):
        changed = asyncio.create_task(put(pods, run, "a", b"second", bearer(run)))
        await asyncio.sleep(0.3)
        same = asyncio.create_task(put(pods, run, "b", b"first", bearer(run)))
        await asyncio.sleep(0.3)
    assert [(await changed)[0], (await same)[0]] == [200, 200]
    row = await store.artifacts.get(run, "b")
    assert row is not None and await whole(store.blobs.read(row.blob)) == b"first"


async def test_a_version_whose_sender_gave_up_does_not_replace_the_one_sent_since(
    pods: Pods, store: Store, bearer: Mint, tmp_path: Path
) -> None:
    await builders.yard(store)
    run = await builders.claimed(store)
    old, new = b"old", b"newer"
    sent = {"Host": "x", "Content-Length": "3", "X-Crewyard-Sha256": hashlib.sha256(old).hexdigest()}
    head = [f"PUT /internal/v1/runs/{run}/artifacts/a HTTP/1.1"]
    head += [f"{name}: {value}" for name, value in {**sent, **WHO, **bearer(run)}.items()]
    blobs = tmp_path / "data" / "blobs" / "crews" / "runs" / run
    async with store.events.open_writer(run):
        _, writer = await asyncio.open_connection(pods.host, pods.port)
        writer.write("\r\n".join([*head, "", ""]).encode() + old)
        async with asyncio.timeout(60):
            while not list(blobs.glob(f"{sent['X-Crewyard-Sha256']}*")):
                await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.1)
    assert (await put(pods, run, "a", new, bearer(run)))[0] == 200
    for _ in range(3):
        row = await store.artifacts.get(run, "a")
        assert row is not None and row.sha256 == hashlib.sha256(new).hexdigest()
        await asyncio.sleep(0.05)
    assert len((await store.events.read(run, 1, 10)).events) == 1
