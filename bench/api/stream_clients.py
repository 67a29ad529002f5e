"""Clients of event streams, as a separate process. Started by `bench.api.streams`.

python -m bench.api.stream_clients PORT KEY COUNT RUNS

Opens COUNT connections over RUNS runs, prints `connected`, then reads commands from standard input: `count`
starts to record the age of every message, `tell` prints the records as JSON and exits.
"""

import asyncio
import json
import re
import resource
import sys
import time
from functools import partial
from typing import ClassVar

MAX_PARALLEL_CONNECTS = 16
MAX_ATTEMPTS = 20
"""To open one stream: a busy server may reject it temporarily (503)."""
_SENT = re.compile(rb'"message":"([0-9]{19})"')


class EventStreamReader(asyncio.Protocol):
    """One connection. Joins messages that are split between reads."""

    counting = False
    ages: ClassVar[list[int]] = []
    lost = 0

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._rest = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request of the stream."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Record the ages of the messages."""
        if not self.opened.done():
            if b" 200 " in data[:20]:
                self.opened.set_result(None)
            else:
                self.opened.set_exception(ConnectionError(f"the server rejected the stream: {data[:40]!r}"))
        data = self._rest + data
        end = data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0
        self._rest = data[end:]
        if EventStreamReader.counting:
            now = time.time_ns()
            EventStreamReader.ages += [now - int(sent) for sent in _SENT.findall(data, 0, end)]

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the stream as lost: it ended before the measurement did."""
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the stream was not opened"))
        elif self.opened.exception() is None:
            EventStreamReader.lost += 1


async def main(port: int, key: str, count: int, runs: int) -> None:
    """Open the streams, a few in parallel, then execute commands."""
    loop, slots = asyncio.get_running_loop(), asyncio.Semaphore(MAX_PARALLEL_CONNECTS)
    started = loop.time()

    async def connect(number: int) -> None:
        path = f"/v1/runs/run_{number % runs}/events"
        request = f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n"
        async with slots, asyncio.timeout(100):
            for attempt in range(MAX_ATTEMPTS):
                make = partial(EventStreamReader, request.encode())
                transport, reader = await loop.create_connection(make, "127.0.0.1", port)
                try:
                    return await reader.opened
                except ConnectionError:
                    transport.close()
                    await asyncio.sleep(0.1 * 2 ** min(attempt, 4))
            raise ConnectionError(f"the server rejected a stream {MAX_ATTEMPTS} times")

    await asyncio.gather(*(connect(number) for number in range(count)))
    print("connected", round(loop.time() - started, 2), flush=True)
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        EventStreamReader.counting = line == "count"
        if line == "tell":
            print(json.dumps({"ages": EventStreamReader.ages, "lost": EventStreamReader.lost}), flush=True)
            return


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
