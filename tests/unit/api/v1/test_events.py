"""Event streams as seen by a client: framing, resuming, ending."""

import asyncio
import json

import pytest

from api.routing import download
from api.store.logs.events import RunEvent
from api.store.logs.stored_event import StoredEvent
from api.streaming import connection, run_events, sse
from crds import objects

JSON = {"Accept": "application/json"}


def messages(raw: bytes) -> list[dict]:
    """Parse the messages of an event stream."""
    events = []
    for block in raw.decode().split("\n\n"):
        fields = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        message = {name: value for name, _, value in fields}
        if "data" in message:
            events.append({**message, "data": json.loads(message["data"])})
    return events


async def ended_run(testbed, *lines):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    await testbed.append_log_lines("run-a", *lines)
    result = {"outcome": "succeeded", "durationMs": 1, "output": "null"}
    await testbed.finish_run(raw, "Succeeded", durationMs=1, result=result)
    return raw


async def test_finished_run_is_replayed(testbed):
    await ended_run(testbed, "one", "two")
    status, raw, headers = await testbed.call("GET", "/v1/runs/run_a/events")
    assert status == 200
    assert headers["Content-Type"] == "text/event-stream"
    assert headers["X-Accel-Buffering"] == "no"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-RateLimit-Limit"]
    assert raw.startswith(b"retry: 2000\n\nid: 1\nevent: run.started\ndata: {")
    events = messages(raw)
    assert [message["id"] for message in events] == ["1", "2", "3", "4"]
    assert [message["event"] for message in events] == ["run.started", "log", "log", "run.completed"]
    assert events[1]["data"]["message"] == "one"
    assert all(message["data"]["run_id"] == "run_a" for message in events)
    assert all("timestamp" in message["data"] for message in events)


async def test_stream_resumes_at_every_position(testbed):
    await ended_run(testbed, *map(str, range(5)))
    all_messages = messages((await testbed.call("GET", "/v1/runs/run_a/events"))[1])
    for position, message in enumerate(all_messages[:-1]):
        _, raw, _ = await testbed.call(
            "GET", "/v1/runs/run_a/events", headers={"Last-Event-ID": message["id"]}
        )
        assert messages(raw) == all_messages[position + 1 :]
    status, raw, _ = await testbed.call(
        "GET", "/v1/runs/run_a/events", headers={"Last-Event-ID": all_messages[-1]["id"]}
    )
    assert (status, raw) == (204, b"")
    for foreign in ("elsewhere", "999", "-1"):
        _, raw, _ = await testbed.call("GET", "/v1/runs/run_a/events", headers={"Last-Event-ID": foreign})
        assert messages(raw) == all_messages


async def test_live_events(testbed):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    headers = {"Authorization": f"Bearer {testbed.admin}"}
    async with testbed.client.get("/v1/runs/run_a/events", headers=headers) as response, asyncio.timeout(60):
        assert await response.content.readuntil(b"\n\n") == b"retry: 2000\n\n"
        await testbed.claim_run(raw)
        assert b"run.started" in await response.content.readuntil(b"\n\n")
        await testbed.append_log_lines("run-a", "line\u2028 with\r\nends ✓")
        (message,) = messages(await response.content.readuntil(b"\n\n"))
        assert message["data"]["message"] == "line\u2028 with\r\nends ✓"
        await testbed.finish_run(raw, "Canceled")
        (last,) = messages(await response.content.readuntil(b"\n\n"))
        assert (last["id"], last["event"]) == ("3", "run.canceled")
        assert await response.content.read() == b""


async def test_a_followed_run_ends_with_its_project(testbed):
    uid = await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    await testbed.append_log_lines("run-a", "line")
    headers = {"Authorization": f"Bearer {testbed.admin}"}
    async with testbed.client.get("/v1/runs/run_a/events", headers=headers) as response, asyncio.timeout(60):
        for _ in range(3):
            await response.content.readuntil(b"\n\n")
        await testbed.store.projects.remove("crew", uid, testbed.clock[0])
        (last,) = messages(await response.content.readuntil(b"\n\n"))
        assert (last["id"], last["event"], last["data"]["reason"]) == ("3", "run.canceled", "Deleted")
        assert await response.content.read() == b""
    assert (await testbed.call("GET", "/v1/runs/run_a/events"))[0] == 404


async def test_idle_stream_sends_keepalive(testbed, monkeypatch):
    monkeypatch.setattr(connection, "KEEPALIVE_SECONDS", 0.05)
    await testbed.add_project("crew")
    await testbed.add_run("run-a", "crew")
    headers = {"Authorization": f"Bearer {testbed.admin}"}
    async with testbed.client.get("/v1/runs/run_a/events", headers=headers) as response, asyncio.timeout(60):
        await response.content.readuntil(b"\n\n")
        for _ in range(3):
            assert await response.content.readuntil(b"\n\n") == b": keepalive\n\n"


async def test_run_that_never_started_has_only_terminal_event(testbed):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.finish_run(raw, "Failed", error={"reason": "NoActiveDeployment", "message": "build first"})
    (only,) = messages((await testbed.call("GET", "/v1/runs/run_a/events"))[1])
    assert (only["id"], only["event"]) == ("1", "run.failed")
    assert only["data"]["error"]["reason"] == "NoActiveDeployment"


async def test_pages_of_events(testbed):
    await ended_run(testbed, *map(str, range(5)))
    events = await testbed.get("/v1/runs/run_a/events?per_page=3&page=2", headers=JSON)
    assert [event["id"] for event in events["data"]] == [4, 5, 6]
    assert events["pagination"] == {"total": 7, "page": 2, "per_page": 3, "has_more": True}
    assert events["data"][0]["type"] == "log"


async def test_a_page_of_large_events_is_whole(testbed):
    await ended_run(testbed, *["x" * 60_000] * 100)
    pages = [
        await testbed.get(f"/v1/runs/run_a/events?per_page=100&page={page}", headers=JSON) for page in (1, 2)
    ]
    assert [event["id"] for page in pages for event in page["data"]] == list(range(1, 103))
    assert [page["pagination"]["has_more"] for page in pages] == [True, False]


async def test_logs_as_text(testbed):
    await ended_run(testbed, "one", "zwei ✓")
    status, raw, headers = await testbed.call("GET", "/v1/runs/run_a/logs")
    assert (status, raw.decode()) == (200, "one\nzwei ✓\n")
    assert headers["Content-Type"] == "text/plain; charset=utf-8"


def test_the_pieces_of_a_long_line_are_one_line_of_the_text():
    pieces = [{"message": "a", "continues": True}, {"message": "b"}, {"message": "c"}]
    events = [RunEvent(number, StoredEvent("log", data)) for number, data in enumerate(pieces, 2)]
    assert run_events.lines(events) == "ab\nc\n"


async def test_the_log_ends_where_it_was_when_the_request_came(testbed, monkeypatch):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    await testbed.append_log_lines("run-a", "one", "two")
    send, sent = download.write, 0

    async def send_while_the_crew_prints(*arguments):
        nonlocal sent
        sent += 1
        assert sent < 9, "the response has no end"
        await testbed.append_log_lines("run-a", "later")
        await send(*arguments)

    monkeypatch.setattr(download, "write", send_while_the_crew_prints)
    assert (await testbed.call("GET", "/v1/runs/run_a/logs"))[:2] == (200, b"one\ntwo\n")


async def test_streams_end_when_the_service_stops(testbed):
    await testbed.add_project("crew")
    await testbed.add_run("run-a", "crew")
    headers = {"Authorization": f"Bearer {testbed.admin}"}
    async with testbed.client.get("/v1/runs/run_a/events", headers=headers) as response, asyncio.timeout(60):
        await response.content.readuntil(b"\n\n")
        stop = asyncio.create_task(testbed.client.server.close())
        assert await response.content.read() == b""  # A clean end; an aborted response raises.
        await stop


async def test_build_log_stream_until_end(testbed):
    from api.store.logs.build_logs import Chunk

    await testbed.add_project("crew")
    raw = await testbed.add_deployment("dep-a", "crew", "Building")
    await testbed.store.build_logs.append(
        "dep-a", "pod", "assemble", [Chunk(1, "fetching\nhalf a "), Chunk(2, "line\n")]
    )
    headers = {"Authorization": f"Bearer {testbed.admin}", "Accept": "text/event-stream"}
    async with (
        testbed.client.get("/v1/deployments/dep_a/logs", headers=headers) as response,
        asyncio.timeout(60),
    ):
        await response.content.readuntil(b"\n\n")
        first = messages(await response.content.readuntil(b"\n\n"))
        second = messages(await response.content.readuntil(b"\n\n"))
        assert [m["data"]["message"] for m in first + second] == ["fetching", "half a line"]
        await testbed.store.build_logs.append("dep-a", "pod", "assemble", [Chunk(3, "pushed")])
        raw["metadata"]["resourceVersion"] = "9999999"
        raw["status"] |= {"phase": "Failed", "error": {"reason": "RegistryPush", "message": "no"}}
        await testbed.store.deployments.observe(objects.Deployment(raw))
        remaining = messages(await response.content.read())
    assert [m["event"] for m in remaining] == ["log", "end"]
    assert remaining[0]["data"] == {"message": "pushed"}
    assert remaining[1]["data"]["status"] == "failed" and remaining[1]["id"] == "end"
    status, _, _ = await testbed.call(
        "GET", "/v1/deployments/dep_a/logs", headers={"Accept": "text/event-stream", "Last-Event-ID": "end"}
    )
    assert status == 204
    _, text, _ = await testbed.call("GET", "/v1/deployments/dep_a/logs")
    assert text == b"fetching\nhalf a line\npushed"


async def test_recreated_deployment_has_its_own_log(testbed):
    from api.maintenance.garbage import delete_garbage
    from api.store.logs.build_logs import Chunk, key_of

    await testbed.add_project("crew")
    logs = testbed.store.build_logs
    first = await testbed.add_deployment("dep-a", "crew", "Failed")
    await logs.append(key_of("dep-a", first["metadata"]["uid"]), "pod", "assemble", [Chunk(1, "old\n")])
    recreated = json.loads(json.dumps(first))
    recreated["metadata"] |= {"uid": "made-again", "resourceVersion": "9999999"}
    recreated["status"]["phase"] = "Building"
    headers = {"Authorization": f"Bearer {testbed.admin}", "Accept": "text/event-stream"}
    await testbed.store.deployments.observe(objects.Deployment(recreated))
    async with (
        testbed.client.get("/v1/deployments/dep_a/logs", headers=headers) as response,
        asyncio.timeout(60),
    ):
        await logs.append(key_of("dep-a", "made-again"), "pod", "assemble", [Chunk(1, "new\n")])
        await response.content.readuntil(b"\n\n")
        assert b"new" in await response.content.readuntil(b"\n\n")
        recreated["metadata"] |= {"uid": "and-again", "resourceVersion": "99999999"}
        await testbed.store.deployments.observe(objects.Deployment(recreated))
        assert b"end" not in await response.content.read(), "the stream must not end: there is another build"
    assert (await testbed.call("GET", "/v1/deployments/dep_a/logs"))[1] == b""
    await delete_garbage(testbed.store)
    for uid in (first["metadata"]["uid"], "made-again"):
        assert (await logs.read(key_of("dep-a", uid))).text == ""


@pytest.mark.parametrize(
    ("header", "after"),
    [(None, 0), ("", 0), ("7", 7), (" 7 ", 7), ("-1", 0), ("1e3", 0), ("9" * 30, 0), ("٣", 0)],
)
def test_last_event_id(header, after):
    assert sse.last_event_id(header) == after


async def test_stalled_client_is_disconnected_and_resumes(testbed, monkeypatch):
    monkeypatch.setattr(connection, "SEND_TIMEOUT_SECONDS", 0.3)
    await ended_run(testbed, *("x" * 60_000 for _ in range(300)))
    host, port = testbed.client.server.host, testbed.client.server.port
    reader, writer = await asyncio.open_connection(host, port, limit=1024)
    request = (
        f"GET /v1/runs/run_a/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {testbed.admin}\r\n\r\n"
    )
    writer.write(request.encode())
    async with asyncio.timeout(60):
        # The status line arrives once the stream is open.
        assert b" 200 " in await reader.readline()
        while b"crewyard_sse_clients 0.0" not in (await testbed.call("GET", "/metrics"))[1]:
            await asyncio.sleep(0.02)
        await testbed.get("/v1/runs")
    writer.close()
    monkeypatch.setattr(connection, "SEND_TIMEOUT_SECONDS", 60.0)
    _, raw, _ = await testbed.call("GET", "/v1/runs/run_a/events", headers={"Last-Event-ID": "300"})
    assert [message["id"] for message in messages(raw)] == ["301", "302"]
