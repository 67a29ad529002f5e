"""The bytes of an event: what a runner sends, what the log stores, and what readers of the stream get."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from api.maintenance.seal_logs import LogSealer
from api.store.accounting import account_batch
from api.store.store import Store
from api.streaming import run_events
from tests.unit.api.internal.conftest import Mint, Pods
from tests.unit.api.store import builders

DEEP = "[" * 198 + "]" * 198
DEEP_TEXT = DEEP.replace("[]", '["é"]')
BIG = "9" * 400
# What is sent, what is stored (ASCII), and what is streamed (UTF-8), of the field `x`.
VALUES = {
    "ascii": ('"a/b \\u0041"', '"a/b A"', '"a/b A"'),
    "non-ascii": ('"zwei ✓ é 😀"', '"zwei \\u2713 \\u00e9 \\ud83d\\ude00"', '"zwei ✓ é 😀"'),
    "escaped pair": ('"\\ud83d\\ude00"', '"\\ud83d\\ude00"', '"😀"'),
    "nul": ('"a\\u0000b"', '"a\\u0000b"', '"a\\u0000b"'),
    "delete": ('"\x7f"', '"\\u007f"', '"\x7f"'),
    "line ends": ('"\\r\\n\\t\\b\\f\\u2028"', '"\\r\\n\\t\\b\\f\\u2028"', '"\\r\\n\\t\\b\\f\u2028"'),
    "backslashes": (r'"C:\\users\\u0041 \""', r'"C:\\users\\u0041 \""', r'"C:\\users\\u0041 \""'),
    # UTF-8 has no surrogates: all of the event stays escaped.
    "lone surrogate": ('"\\ud800 é"', '"\\ud800 \\u00e9"', '"\\ud800 \\u00e9"'),
    "swapped pair": ('"\\ude00\\ud83d"', '"\\ude00\\ud83d"', '"\\ude00\\ud83d"'),
    "deep": (DEEP, DEEP, DEEP),
    "deep with text": (DEEP_TEXT, DEEP_TEXT.replace("é", "\\u00e9"), DEEP_TEXT),
    "integers": (f"[{BIG},-0,2]", f"[{BIG},0,2]", f"[{BIG},0,2]"),
    "floats": (
        "[1.0, -0.0, 1e400, -1E400, 1E5, 0.1, 1.0000000000000002, 5e-324]",
        "[1.0,-0.0,null,null,100000.0,0.1,1.0000000000000002,5e-324]",
        "[1.0,-0.0,null,null,100000.0,0.1,1.0000000000000002,5e-324]",
    ),
    "not numbers": ("[NaN, Infinity]", "[null,null]", "[null,null]"),
    "names": ('{"b": 1, "a": 2, "b": 3, "": {}}', '{"b":3,"a":2,"":{}}', '{"b":3,"a":2,"":{}}'),
    "like a line": ('{"d": {"s": 1, "t": "log"}}', '{"d":{"s":1,"t":"log"}}', '{"d":{"s":1,"t":"log"}}'),
    "closing braces": ('"}},\\"full\\":true}"', '"}},\\"full\\":true}"', '"}},\\"full\\":true}"'),
}


@dataclass(frozen=True)
class HeldRun:
    """A claimed run, as its pod and its readers use it."""

    pods: Pods
    store: Store
    name: str
    headers: dict[str, str]

    @property
    def head(self) -> str:
        """Return the first fields of an event's data."""
        return f'"run_id":"{self.name.replace("-", "_", 1)}","timestamp":"2026-11-21T10:00:02.000123Z"'

    async def send(self, number: int, data: str) -> None:
        """Send an event with that JSON as its data."""
        event = f'{{"seq": {number}, "type": "a.b", "time": "2026-11-21T10:00:02.000123Z", "data": {data}}}'
        body = f'{{"pod_uid": "pod", "nonce": "nonce", "events": [{event}]}}'.encode()
        path = f"/internal/v1/runs/{self.name}/events"
        async with self.pods.post(path, data=body, headers=self.headers) as response:
            assert (response.status, await response.json()) == (200, {"acknowledged": number})

    async def frames(self, after: int) -> bytes:
        """Return the messages of the events after an id, as a stream sends them."""
        return b"".join(run_events.frames((await self.store.events.read(self.name, after, 100)).events))


@pytest.fixture
async def held(pods: Pods, store: Store, bearer: Mint) -> HeldRun:
    """Claim a run."""
    await builders.add_demo_project(store)
    name = await builders.claim_run(store)
    return HeldRun(pods, store, name, bearer(name))


async def test_stored_and_streamed_bytes(held: HeldRun, tmp_path: Path) -> None:
    stored, streamed = b"", b""
    for number, (sent, ascii_, utf8) in enumerate(VALUES.values(), 1):
        await held.send(number, f'{{"x": {sent}, "run_id": "forged"}}')
        message = f'id: {number + 1}\nevent: a.b\ndata: {{{held.head},"x":{utf8}}}\n\n'.encode()
        # From memory, where the last append is.
        assert await held.frames(number) == message
        stored += f'{{"s":{number},"t":"a.b","d":{{{held.head},"x":{ascii_}}}}}\n'.encode()
        streamed += message
    (file,) = (tmp_path / "data" / "events").rglob("*.log")
    assert file.read_bytes() == stored
    assert await held.frames(1) == streamed

    ended = {"completionTime": "2026-11-21T10:00:30Z"}
    await held.store.run_writer.observe(builders.run(held.name, "Succeeded", **ended), builders.NOW)
    await account_batch(held.store)
    later = builders.NOW + timedelta(days=9)
    assert await LogSealer(held.store).run_once(later, later, 9)
    assert await held.store.archives.find(held.name)
    assert not file.exists()
    assert (await held.frames(1)).startswith(streamed)


@pytest.mark.parametrize(
    ("text", "size"),
    # {"x": "", "y": 1} has 17 bytes.
    [("x" * 66543, 66560), ("x" * 66544, 66561), ("é" * 33271, 66559), ("\U0001f600" * 16636, 66561)],
)
async def test_size_is_that_of_utf8_with_spaces(held: HeldRun, text: str, size: int) -> None:
    await held.send(1, f'{{"x":"{text}","y":1}}')
    (event,) = (await held.store.events.read(held.name, 1, 9)).events
    if size <= 66560:
        assert (event.type, event.data["x"], event.data["y"]) == ("a.b", text, 1)
    else:
        problem = f"an event of type a.b was dropped: it has {size} bytes, more than 65536"
        assert (event.type, event.data["message"]) == ("log", problem)


async def test_what_is_left_out_of_an_event_counts(held: HeldRun) -> None:
    await held.send(1, f'{{"run_id": "{"x" * 70000}"}}')
    (event,) = (await held.store.events.read(held.name, 1, 9)).events
    assert "it has 70014 bytes" in event.data["message"]
