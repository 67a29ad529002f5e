"""Event streams at their limits: slow readers, reconnects at any position, long build logs."""

import asyncio
import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.services import SERVICES
from api.store.logs.build_logs import Chunk
from api.streaming import connection
from api.streaming import sse as frames
from api.v1.deployments import build_log_lines
from tests.unit.api.v1.test_events import messages


async def start_run(testbed):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    return raw


async def finish_run(testbed, raw):
    result = {"outcome": "succeeded", "durationMs": 1, "output": "null"}
    await testbed.finish_run(raw, "Succeeded", durationMs=1, result=result)


class RawSseReader:
    """A client that reads only on request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(
        cls, testbed, path: str, last: str = "", version: str = "1.1", method: str = "GET"
    ) -> "RawSseReader":
        host, port = testbed.client.server.host, testbed.client.server.port
        reader, writer = await asyncio.open_connection(host, port, limit=1024)
        resumed = f"Last-Event-ID: {last}\r\n" if last else ""
        writer.write(
            f"{method} {path} HTTP/{version}\r\nHost: x\r\nAccept: text/event-stream\r\n{resumed}"
            f"Authorization: Bearer {testbed.admin}\r\n\r\n".encode()
        )
        return cls(reader, writer)

    async def read_rest(self) -> list[dict]:
        """Return the complete messages up to the end of the connection."""
        found = b""
        try:
            while piece := await self.reader.read(1 << 16):
                found += piece
        except ConnectionError:
            pass
        self.writer.close()
        body, text = found.partition(b"\r\n\r\n")[2], b""
        while body:
            size, _, body = body.partition(b"\r\n")
            text, body = text + body[: int(size, 16)], body[int(size, 16) + 2 :]
        return messages(text[: text.rfind(b"\n\n") + 2])


async def read_stream(testbed, path: str, last: str = "") -> list[dict]:
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
    _, raw, _ = await testbed.call("GET", path, headers=headers)
    return messages(raw) if raw else []


EVENTS = "/v1/runs/run_a/events"


async def test_slow_reader_is_cut_off_and_resumes_without_affecting_others(testbed, monkeypatch):
    raw = await start_run(testbed)
    stuck = [await RawSseReader.open(testbed, EVENTS) for _ in range(5)]
    addresses = {one.writer.get_extra_info("sockname") for one in stuck}
    drain = connection.EventStream.drain

    async def impatient(stream):
        """Wait briefly for those that read nothing, and for all others as long as a busy machine needs."""
        stops = stream._request.transport.get_extra_info("peername") in addresses
        monkeypatch.setattr(connection, "SEND_TIMEOUT_SECONDS", 0.3 if stops else 60.0)
        await drain(stream)

    monkeypatch.setattr(connection.EventStream, "drain", impatient)
    brisk = asyncio.create_task(read_stream(testbed, EVENTS))
    async with asyncio.timeout(120):
        for _ in range(30):
            await testbed.append_log_lines("run-a", *("x" * 30_000 for _ in range(10)))
            # Each is a burst for five slow readers: their buffers are bounded.
            for open_ in testbed.client.server.app[SERVICES].streams._open.values():
                transport = open_.stream._transport
                assert not transport or transport.get_write_buffer_size() <= 2 * connection.MAX_BUFFER_BYTES
        await finish_run(testbed, raw)
        whole = await brisk
        assert [message["id"] for message in whole] == [str(n) for n in range(1, 303)]
        while b"crewyard_sse_clients 0.0" not in (await testbed.call("GET", "/metrics"))[1]:
            await asyncio.sleep(0.05)
        for one in stuck:
            seen = await one.read_rest()
            assert seen == whole[: len(seen)] and len(seen) < len(whole)
            assert await read_stream(testbed, EVENTS, seen[-1]["id"]) == whole[len(seen) :]


async def test_live_run_is_identical_from_every_position(testbed):
    raw = await start_run(testbed)
    whole = asyncio.create_task(read_stream(testbed, EVENTS))
    async with asyncio.timeout(120):
        joined = []
        for number in range(12):
            await testbed.append_log_lines("run-a", *(f"{number}.{n}" for n in range(number % 3 + 1)))
            last = 1 + sum(n % 3 + 1 for n in range(number + 1))
            joined += [
                (at, asyncio.create_task(read_stream(testbed, EVENTS, str(at)))) for at in range(1, last + 1)
            ]
            await asyncio.sleep(0)
        await finish_run(testbed, raw)
        found = await whole
        assert [message["id"] for message in found] == [str(n) for n in range(1, len(found) + 1)]
        assert [m["event"] for m in found if m["event"].startswith("run.")] == [
            "run.started",
            "run.completed",
        ]
        for position, others in joined:
            assert await others == found[position:]


async def test_subscribers_that_join_and_leave_miss_no_event(testbed):
    raw = await start_run(testbed)
    chance = random.Random(3)
    done = False

    async def reader(seed: int) -> list[dict]:
        own, seen = random.Random(seed), []
        headers = {"Authorization": f"Bearer {testbed.admin}"}
        while True:
            last = {"Last-Event-ID": seen[-1]["id"]} if seen else {}
            async with testbed.client.get(EVENTS, headers={**headers, **last}) as answer:
                if answer.status == 204:
                    return seen
                for _ in range(own.randint(1, 40)):
                    block = b""
                    while not block.endswith(b"\n\n"):
                        line = await answer.content.readline()
                        if not line:
                            break
                        block += line
                    seen += messages(block)
                    if not block:
                        break

    async with asyncio.timeout(120):
        readers = [asyncio.create_task(reader(seed)) for seed in range(10)]
        while not done:
            await testbed.append_log_lines("run-a", *("line" for _ in range(chance.randint(1, 30))))
            await asyncio.sleep(chance.random() / 100)
            done = (await testbed.store.events.seq("run-a")) > 600
        await finish_run(testbed, raw)
        found = await asyncio.gather(*readers)
    assert [message["id"] for message in found[0]] == [str(n) for n in range(1, len(found[0]) + 1)]
    assert all(one == found[0] for one in found)
    assert found[0][-1]["event"] == "run.completed"
    assert not testbed.client.server.app[SERVICES].feeds._feeds


async def test_http_1_0_clients_get_no_chunked_encoding(testbed):
    raw = await start_run(testbed)
    old = await RawSseReader.open(testbed, EVENTS, version="1.0")
    async with asyncio.timeout(60):
        await old.reader.readuntil(b"retry: 2000\n\n")
        await testbed.append_log_lines("run-a", "one")
        await finish_run(testbed, raw)
        found = messages(await old.reader.read(-1))
    assert [message["id"] for message in found] == ["1", "2", "3"]
    old.writer.close()


async def test_disconnected_client_is_detected(testbed, monkeypatch):
    monkeypatch.setattr(connection, "KEEPALIVE_SECONDS", 0.1)
    await start_run(testbed)
    aborted = await RawSseReader.open(testbed, EVENTS)
    await aborted.reader.readuntil(b"\n\n")
    aborted.writer.transport.abort()
    async with asyncio.timeout(60):
        while b"crewyard_sse_clients 0.0" not in (await testbed.call("GET", "/metrics"))[1]:
            await asyncio.sleep(0.02)
    assert not testbed.client.server.app[SERVICES].feeds._feeds


LOGS = "/v1/deployments/dep_a/logs"


async def build(testbed, texts):
    await testbed.add_project("crew")
    await testbed.add_deployment("dep-a", "crew", "Building")
    chunks = [Chunk(n, text) for n, text in enumerate(texts, 1)]
    await testbed.store.build_logs.append("dep-a", "pod", "assemble", chunks)


async def test_build_log_resumes_after_every_line(testbed):
    text = "one\ntwo\n\nthree and a " + "long " * 30_000 + "line\nfour\rstill four\n\u2028\nno end"
    cuts = sorted({0, 5, 6, 7, 8, 20, 70_000, 140_000, len(text) - 3, len(text)})
    await build(testbed, [text[a:b] for a, b in itertools.pairwise(cuts)])
    await testbed.add_deployment("dep-a", "crew", "Failed", error={"reason": "RegistryPush", "message": "no"})
    whole = await read_stream(testbed, LOGS)
    assert whole[-1]["id"] == "end"
    logged = "".join(
        m["data"]["message"] + ("" if m["data"].get("continues") else "\n")
        for m in whole
        if m["event"] == "log"
    )
    assert logged == text + "\n"
    for position, message in enumerate(whole[:-1]):
        assert await read_stream(testbed, LOGS, message["id"]) == whole[position + 1 :]
    for foreign in ("0.99999999", "77.0", "elsewhere", "5"):
        found = await read_stream(testbed, LOGS, foreign)
        assert found[-1]["id"] == "end" and found[-2]["data"] == {"message": "no end"}


async def test_head_of_a_followed_build_log_has_no_body(testbed):
    """Bytes after the head would be read as the response to the next request of the connection."""
    await build(testbed, ["one\n"])
    client = await RawSseReader.open(testbed, LOGS, method="HEAD")
    async with asyncio.timeout(60):
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200") and b"Content-Type: text/event-stream" in head
        client.writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await client.reader.readline()).startswith(b"HTTP/1.1 200")
    client.writer.close()


async def test_slow_build_log_reader_is_cut_off_and_resumes(testbed, monkeypatch):
    monkeypatch.setattr(connection, "SEND_TIMEOUT_SECONDS", 0.5)
    await build(testbed, [f"{n} " + "x" * 50_000 + "\n" for n in range(400)])
    stuck = await RawSseReader.open(testbed, LOGS)
    async with asyncio.timeout(60):
        # The first line arrives when the stream is open, which may be cut off before the metric is read.
        assert b" 200 " in await stuck.reader.readline()
        while b"crewyard_sse_clients 0.0" not in (await testbed.call("GET", "/metrics"))[1]:
            await asyncio.sleep(0.02)
        seen = await stuck.read_rest()
        monkeypatch.setattr(connection, "SEND_TIMEOUT_SECONDS", 60.0)
        await testbed.add_deployment(
            "dep-a", "crew", "Failed", error={"reason": "RegistryPush", "message": "no"}
        )
        rest = await read_stream(testbed, LOGS, seen[-1]["id"])
    numbers = [int(m["data"]["message"].split()[0]) for m in [*seen, *rest] if m["event"] == "log"]
    assert numbers == list(range(400)) and rest


@given(
    text=st.text(alphabet="ab\n", max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    page=st.integers(1, 4),
    longest=st.integers(1, 9),
)
def test_lines_from_every_position_are_the_remaining_ones(text, cuts, page, longest):
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[a:b] for a, b in itertools.pairwise(edges)]

    def read(position):
        lines = build_log_lines.BuildLogSplitter(position)
        found = []
        while lines.start < len(chunks):
            stop = min(len(chunks), lines.start + page)
            found += lines.feed("".join(chunks[lines.start : stop]), stop)
        return found + lines.flush()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_log_lines, "MAX_LINE_CHARACTERS", longest)
        whole = read(build_log_lines.START)
        assert "".join(line.text + "\n" * (not line.continues) for line in whole) in (text, text + "\n")
        for number, line in enumerate(whole):
            assert build_log_lines.parse_position(line.position.id) == line.position
            assert [other.text for other in read(line.position)] == [
                other.text for other in whole[number + 1 :]
            ]


@given(sizes=st.lists(st.integers(1, 50_000), max_size=12), before=st.integers(0, 5))
def test_batches_contain_the_messages_in_order(sizes, before):
    made = [bytes([97 + n]) * size for n, size in enumerate(sizes)]
    found = list(frames.batches(made, before))
    assert b"".join(batch.text for batch in found) == b"".join(made)
    assert [batch.previous_id for batch in found] == [before, *(batch.last_id for batch in found)][
        : len(found)
    ]
    assert all(
        len(batch.text) <= frames.BATCH_BYTES or batch.last_id == batch.previous_id + 1 for batch in found
    )
    assert not found or found[-1].last_id == before + len(made)


def test_data_is_always_one_line():
    hostile = {"message": "\n\nevent: x\r\r\u2028\0\ud800"}
    raw = frames.frame("log", hostile, 3)
    assert raw.count(b"\n") == 4 and b"\r" not in raw
    assert json.loads(raw.split(b"data: ")[1]) == hostile


async def test_streams_leave_connections_for_other_requests(testbed, monkeypatch):
    raw = await start_run(testbed)
    monkeypatch.setattr(testbed.client.server.app[SERVICES].streams, "_limit", 1)
    path, accept = "/v1/runs/run_a/events", {"Accept": "text/event-stream"}
    headers = {**accept, "Authorization": f"Bearer {testbed.admin}"}
    async with testbed.client.get(path, headers=headers) as first:
        await first.content.readuntil(b"\n\n")
        status, answer, more = await testbed.call("GET", path, headers=accept)
        assert (status, answer["error"]["code"]) == (503, "unavailable")
        assert more["Retry-After"]
        await testbed.get("/v1/runs/run_a")
        await finish_run(testbed, raw)
        await first.read()
    async with testbed.client.get(path, headers=headers) as again:
        assert b"run.completed" in await again.read()


async def test_more_keys_are_not_more_streams(testbed, monkeypatch):
    for project in ("alpha", "beta"):
        await testbed.add_project(project)
        await testbed.claim_run(await testbed.add_run(f"run-{project}", project))
    monkeypatch.setattr(testbed.client.server.app[SERVICES].streams, "_limit", 3)

    def opened(project, key):
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {key}"}
        return testbed.client.get(f"/v1/runs/run_{project}/events", headers=headers)

    first, second, third = (testbed.create_key("read", projects=["alpha"]) for _ in range(3))
    other = testbed.create_key("read", projects=["beta"])
    async with opened("alpha", first) as one, opened("alpha", second) as two:
        assert (one.status, two.status) == (200, 200)
        async with opened("alpha", third) as refused:
            assert refused.status == 429
            assert "the keys of project alpha have 2 open event streams" in await refused.text()
        async with opened("beta", other) as answered:
            assert answered.status == 200
    async with asyncio.timeout(30):
        # The server notices a moment later that the others have left.
        while (again := await opened("alpha", third)).status == 429:
            again.release()
            await asyncio.sleep(0.01)
    assert again.status == 200
    again.close()
    async with testbed.client.get("/metrics") as answer:
        assert 'crewyard_limit_reached_total{limit="open_streams"} 1.0' in await answer.text()
