"""Slow, endless and malformed requests: others are served meanwhile, and no connection leaks."""

import asyncio
import gzip
import json

import pytest
from aiohttp import http_parser

from api.http import request_body as body
from api.http.request_body import MIN_BODY_LIMIT_BYTES
from api.http.server import refuse
from tests.unit.http_server.conftest import connections_testbed

FIELDS = "Host: x\r\nAuthorization: Bearer {key}\r\n"
POST = f"POST /v1/projects HTTP/1.1\r\n{FIELDS}Content-Type: application/json\r\n"
GET = f"GET /v1/projects HTTP/1.1\r\n{FIELDS}"


@pytest.fixture
async def server_testbed(testbed, monkeypatch):
    monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 0.5)
    runner = testbed.client.server.runner
    async with connections_testbed(runner, "/v1/projects", testbed.admin, refuse) as opened:
        yield opened


def chunked(data: bytes, size: int) -> bytes:
    """Return a chunked body."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


BIG = json.dumps({"name": "x" * (MIN_BODY_LIMIT_BYTES + 1)}).encode()
BOMB = gzip.compress(b" " * 20_000_000, 9)
CHUNKS = "Transfer-Encoding: chunked\r\n"
ODD = {
    "a body that is too long by its length": (POST + f"Content-Length: {len(BIG)}\r\n\r\n", b"", 413),
    "a body that is too long": (POST + CHUNKS + "\r\n", chunked(BIG, 65536), 413),
    "a body that grows": (POST + CHUNKS + "Content-Encoding: gzip\r\n\r\n", chunked(BOMB, 65536), 415),
    "a body of chunks of one byte": (
        POST + CHUNKS + "\r\n",
        chunked(b'{"name": "?"}' + b" " * 30_000, 1),
        400,
    ),
    "a body that does not come": (POST + "Content-Length: 20\r\n\r\n", b'{"name":', 408),
    "chunks that do not come": (POST + CHUNKS + "\r\n", b'5\r\n{"na', 408),
    "a chunk of no size": (POST + CHUNKS + "\r\n", b"zz\r\n{}\r\n", 400),
    "a chunk that claims everything": (POST + CHUNKS + "\r\n", b"ffffffffffffffffffff\r\n{}\r\n", 400),
    "two lengths": (POST + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", b"{}", 400),
    "length and chunks": (POST + CHUNKS + "Content-Length: 5\r\n\r\n", b"0\r\n\r\n", 400),
    "a length with a sign": (POST + "Content-Length: +2\r\n\r\n", b"{}", 400),
    "a list of lengths": (POST + "Content-Length: 2, 2\r\n\r\n", b"{}", 400),
    "a space in a field's name": (POST + "Transfer-Encoding : chunked\r\n\r\n", b"0\r\n\r\n", 400),
    "chunks that are not last": (POST + "Transfer-Encoding: chunked, identity\r\n\r\n", b"0\r\n\r\n", 400),
    "a field over two lines": (POST + "X: y\r\n Content-Length: 2\r\n\r\n", b"{}", 400),
    "lines without CR": (POST.replace("\r", "") + "Content-Length: 2\n\n", b"{}", 400),
    "a bare CR": (POST + "X: y\rContent-Length: 2\r\n\r\n", b"{}", 400),
    "two hosts": (GET + "Host: y\r\n\r\n", b"", 400),
    "a long field": (GET + "X: " + "x" * 9000 + "\r\n\r\n", b"", 400),
    "a long address": ("GET /" + "x" * 9000 + " HTTP/1.1\r\n\r\n", b"", 400),
    "many fields": (GET + "".join(f"X-{n}: x\r\n" for n in range(200)) + "\r\n", b"", 400),
    "no HTTP": ("\x16\x03\x01 hello\r\n\r\n", b"", 400),
}


@pytest.mark.parametrize("case", ODD)
async def test_malformed_requests_get_error_responses(server_testbed, monkeypatch, case):
    head, sent, status = ODD[case]
    if status != 408:
        monkeypatch.setattr(body, "BODY_TIMEOUT_SECONDS", 60.0)
    reader, writer = await server_testbed.connect(head)
    try:
        writer.write(sent)
        await writer.drain()
    except ConnectionError:
        pass
    await server_testbed.check_ordinary_request()
    line = await reader.readline()
    assert line.split()[1] == str(status).encode()
    writer.close()


REFUSED = {
    "an unknown method": ("FOO /v1/runs HTTP/1.1\r\n{FIELDS}\r\n", "Invalid method encountered"),
    "raw bytes in the path": ("GET /é HTTP/1.1\r\n{FIELDS}\r\n", "Invalid char in url path"),
    "two hosts": (GET + "Host: y\r\n\r\n", "Duplicate 'Host' header found."),
    "a control character": (GET[:-2] + "\x01\r\n\r\n", "Invalid header value char"),
    "a long field": (GET[:-2] + "x" * 9000 + "\r\n\r\n", "Got more than 8190 bytes when reading"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_the_parser_refuses_gets_an_error_of_the_api(server_testbed, caplog, case):
    head, reason = REFUSED[case]
    reader, writer = await server_testbed.connect(head.replace("{FIELDS}", FIELDS))
    fields, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    assert fields.split()[1] == "400" and "Content-Type: application/json" in fields
    message = f"this is not a valid HTTP request: {reason}"
    assert json.loads(body) == {"error": {"code": "invalid_request", "message": message, "details": {}}}
    # Neither the log nor the response repeats what may be a key.
    assert server_testbed.key not in caplog.text + body and "aiohttp" not in fields
    writer.close()


UNPACKED = {
    "without a key": ("POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n", 401),
    "to no path": ("POST /nothing HTTP/1.1\r\nHost: x\r\n", 404),
    "to a webhook": ("POST /v1/hooks/git/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n", 404),
    "to an upload": ("PUT /v1/uploads/upl_x/content?token=x HTTP/1.1\r\nHost: x\r\n", 403),
    "with a key": (POST, 415),
}


@pytest.mark.parametrize("case", UNPACKED)
async def test_compressed_bodies_are_not_decompressed(server_testbed, monkeypatch, case):
    unpacked = []
    taken = http_parser.DeflateBuffer.feed_data

    def seen(self, chunk, *more):
        unpacked.append(len(chunk))
        return taken(self, chunk, *more)

    monkeypatch.setattr(http_parser.DeflateBuffer, "feed_data", seen)
    head, status = UNPACKED[case]
    bomb = gzip.compress(b" " * 1_000_000, 9)
    reader, writer = await server_testbed.connect(
        f"{head}Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
    )
    writer.write(bomb)
    assert (await reader.readline()).split()[1] == str(status).encode()
    # The server drains the unread body after the response.
    await server_testbed.check_ordinary_request()
    writer.close()
    await server_testbed.wait_for_closed()
    assert unpacked == []


async def test_slow_body_times_out(server_testbed):
    reader, writer = await server_testbed.connect(POST + CHUNKS + "\r\n")
    for _ in range(20):
        writer.write(b"1\r\n \r\n")
        await asyncio.sleep(0.05)
    assert b" 408 " in await reader.readline()
    await server_testbed.check_ordinary_request()
    writer.close()


async def test_pipelined_requests_are_answered_in_order(server_testbed):
    # More requests than aiohttp buffers; the others wait in the socket, not in memory.
    reader, writer = await server_testbed.connect(
        (GET + "X-Request-Id: {{n}}\r\n\r\n").replace("{{n}}", "first")
    )
    rows = "".join(GET.format(key=server_testbed.key) + f"X-Request-Id: row-{n}\r\n\r\n" for n in range(500))
    writer.write(rows.encode())
    await server_testbed.check_ordinary_request()
    seen = []
    while len(seen) < 501:
        line = await reader.readline()
        if line.lower().startswith(b"x-request-id:"):
            seen.append(line.split()[1].decode())
    assert seen == ["first", *(f"row-{n}" for n in range(500))]
    writer.close()


async def test_half_closed_connections_end(server_testbed):
    for head, sent in ((GET, b"\r\n"), (GET, b""), (POST + CHUNKS + "\r\n", b"5\r\n{"), ("", b"")):
        reader, writer = await server_testbed.connect(head, sent)
        writer.write_eof()
        async with asyncio.timeout(60):
            await reader.read()
        await server_testbed.check_ordinary_request()
        writer.close()
