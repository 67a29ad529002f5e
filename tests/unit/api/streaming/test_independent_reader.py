"""An independent client, npm `eventsource`, receives all stored events, across reconnects, up to the 204."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from api.internal.event_validation import parse_event
from api.services import SERVICES
from api.streaming import connection

HERE = Path(__file__).parent / "eventsource"
HOSTILE = [
    "a\rb",
    "a\nb",
    "a\r\nb",
    "\n\nevent: run.completed\ndata: {}\n\n",
    "\r\rid: 999\rdata: x\r\r",
    "a\0b",
    "\u2028\u2029\u0085\u000b\u000c\u001c",
    "\ud800 and \udfff alone",
    "\ufeffmark",
    ": comment",
    "data: data: ",
    "",
    " ",
    "\U0001f6a2" * 1000,
    "x" * 60_000,
    "\u2028" * 20_000,
    '"\\"\\\\u0000',
]
NAMES = ["a\nb.txt", "a\rb", "\u2028.md", "id: 7", "dir/\u0001/ü\t.bin", "\n\nevent: run.failed\ndata: x"]


@pytest.fixture(scope="session")
def reader(tmp_path_factory) -> Path:
    """The script, next to the packages of the lock file."""
    place = tmp_path_factory.mktemp("eventsource")
    for name in ("package.json", "package-lock.json", "read.mjs"):
        shutil.copy(HERE / name, place)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=place,
        check=True,
        capture_output=True,
        timeout=300,
    )
    return place / "read.mjs"


async def read(script: Path, url: str, key: str, *types: str):
    return await asyncio.create_subprocess_exec(
        "node", str(script), url, key, *types, stdout=asyncio.subprocess.PIPE, limit=1 << 24
    )


async def append_values(testbed, first: int, values: list[object]) -> None:
    """Append events as a runner posts them: JSON with escapes that UTF-8 cannot represent."""
    kinds = ("agent.completed", "log")
    logged = [
        {"seq": first + n, "type": kinds[n % 2], "time": None, "data": {"message": value}}
        for n, value in enumerate(values)
    ]
    posted = json.loads(json.dumps({"events": logged}))
    parsed = [parse_event("run-a", item, testbed.clock[0], 65536) for item in posted["events"]]
    async with testbed.store.events.open_writer("run-a") as log:
        assert await log.append(parsed) == first + len(values) - 1
    testbed.store.events.notify_appended("run-a")


async def test_independent_client_receives_every_event(testbed, reader, monkeypatch):
    monkeypatch.setattr(connection, "PREAMBLE", b"retry: 20\n\n")
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    url = str(testbed.client.make_url("/v1/runs/run_a/events"))
    ends = ["run.started", "run.completed", "run.failed", "log", "artifact", "agent.completed"]
    key = testbed.create_key("read")
    process = await read(reader, url, key, *ends)
    seen = []

    async def until(count: int) -> None:
        while len(seen) < count:
            seen.append(json.loads(await process.stdout.readline()))

    streams = testbed.client.server.app[SERVICES].streams
    async with asyncio.timeout(240):
        for number, value in enumerate(HOSTILE):
            await append_values(testbed, number + 1, [value])
            if number % 4 == 3:
                # End the stream midway, as a rollout does; the client reconnects.
                await until(number + 2)
                for holder in streams.credentials():
                    streams.end_streams(holder)
        await append_values(testbed, len(HOSTILE) + 1, [{name: name} for name in HOSTILE[:-4]])
        for name in NAMES:
            async with testbed.store.events.open_writer("run-a") as log:
                await log.append_artifact(
                    NAMES.index(name) + 1, {"run_id": "run_a", "timestamp": "", "name": name}
                )
        result = {"outcome": "succeeded", "durationMs": 1, "output": json.dumps(HOSTILE[:10])}
        await testbed.finish_run(raw, "Succeeded", durationMs=1, result=result)
        while "closed" not in (seen[-1] if seen else {}):
            await until(len(seen) + 1)
        await process.wait()
    *messages, closed = seen
    assert closed == {"closed": 204}
    assert [message["id"] for message in messages] == [str(n) for n in range(1, len(messages) + 1)]
    logged = [m["data"]["message"] for m in messages if m["type"] in ("log", "agent.completed")]
    assert logged == [*HOSTILE, *({name: name} for name in HOSTILE[:-4])]
    assert [m["data"]["name"] for m in messages if m["type"] == "artifact"] == NAMES
    assert messages[-1]["type"] == "run.completed"
    assert messages[-1]["data"]["output"] == HOSTILE[:10]
