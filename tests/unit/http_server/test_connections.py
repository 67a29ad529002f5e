"""Slow, endless and idle connections: others are served meanwhile, and no connection leaks."""

import asyncio
import time

from http_server import connections


async def test_incomplete_request_heads_do_not_block_others(testbed):
    slow = [await testbed.connect("GET / HTTP/1.1\r\nX-Slow: ") for _ in range(1000)]
    await testbed.check_ordinary_request()
    for reader, writer in slow:
        assert await reader.read() == b""
        writer.close()


async def test_longest_idle_connection_is_closed_at_the_limit(testbed):
    testbed.open._limit = 50
    idle = [await testbed.connect("") for _ in range(200)]
    await testbed.check_ordinary_request()
    assert len(testbed.open) <= 50
    for _, writer in idle:
        writer.close()


async def test_connections_accepted_at_once_keep_to_the_limit(testbed):
    testbed.open._limit = 50
    opened = await asyncio.gather(*(testbed.connect("") for _ in range(300)))
    await testbed.check_ordinary_request()
    assert len(testbed.open) <= 50
    for _, writer in opened:
        writer.close()


async def test_a_connection_whose_body_comes_after_the_response_is_idle(testbed):
    testbed.open._limit = 10
    late, head = [], "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
    for _ in range(10):
        reader, writer = await testbed.connect(head)
        assert (await reader.readline()).startswith(b"HTTP/1.1 401")
        writer.write(b"x")
        await writer.drain()
        late.append(writer)
    async with asyncio.timeout(60):
        while len(testbed.open._idle) < len(testbed.open):
            await asyncio.sleep(0.02)
    await testbed.check_ordinary_request()
    for writer in late:
        writer.close()


async def test_slow_or_large_request_head_is_cut_off(testbed):
    async def drip(piece: bytes, pause: float) -> None:
        reader, writer = await testbed.connect("GET / HTTP/1.1\r\n")
        try:
            while not reader.at_eof():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
        except ConnectionError:
            pass
        writer.close()

    fields = b"".join(b"X-%d: %s\r\n" % (n, b"x" * 8000) for n in range(20))
    await asyncio.gather(drip(b"x", 0.05), drip(fields, 0.05), testbed.check_ordinary_request())


async def test_large_body_with_head_is_accepted_on_a_blocked_loop(testbed, monkeypatch):
    taken = connections.ClientConnection.data_received

    def held_up(self, data: bytes) -> None:
        taken(self, data)
        if len(data) > connections.MAX_HEAD_BYTES:
            time.sleep(3 * connections.SWEEP_SECONDS)

    monkeypatch.setattr(connections.ClientConnection, "data_received", held_up)
    head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    reader, writer = await testbed.connect(head, b"x" * 100_000)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()


async def test_bytes_that_are_no_request_are_not_logged(testbed, caplog):
    reader, writer = await testbed.connect("GET / HTTP/1.1\r\nAuthorization: Bearer a-key\x01\r\n\r\n")
    fields, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert (fields.split()[1], body) == (b"400", b"this is not a valid HTTP request")
    assert caplog.text == ""
    writer.close()
