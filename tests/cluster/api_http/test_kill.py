"""The API server is killed repeatedly with 200 open streams, new runs and runners that post events.

No acknowledged data is lost, and every stream resumes at its last event and ends with one terminal event.
"""

import asyncio
import json
import os
import secrets
import signal
import sys
import time
from datetime import UTC, datetime

import aiohttp
import pytest

from crds import api_keys, pod_tokens
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.names import name_of
from crds.times import format_second
from tests.testbed.ports import free_port
from tests.unit.api.v1.test_events import messages

KEY = secrets.token_hex(16)
CLAIMED_RUNS, READER_COUNT, LOG_LINES, KILL_COUNT = 4, 200, 300, 3


class KilledApiServer:
    """The process, which restarts with the same address and data."""

    def __init__(self, directory, namespace: str) -> None:
        admin_key = api_keys.generate()
        port = free_port()
        record = {"id": admin_key.key_id, "hash": admin_key.hash, "scopes": ["admin"], "plan": "enterprise"}
        self.url = f"http://127.0.0.1:{port}"
        self.headers = {"Authorization": f"Bearer {admin_key.text}"}
        self._environment = {
            **os.environ,
            "CREWYARD_DATA": str(directory),
            "CREWYARD_TOKEN_KEY": KEY,
            "CREWYARD_NAMESPACE": namespace,
            "CREWYARD_PUBLIC_URL": self.url,
            "CREWYARD_PORT": str(port),
            "CREWYARD_ADMIN_KEYS": json.dumps([record]),
            "CREWYARD_PLANS": '{"enterprise": {"requests_per_minute": 1000000, "concurrent_runs": 100}}',
            "CREWYARD_LOG_LEVEL": "error",
        }
        self.process = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "api", env=self._environment
        )

    async def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        await self.process.wait()

    async def terminate(self) -> None:
        """Send SIGTERM and wait for the exit."""
        self.process.send_signal(signal.SIGTERM)
        assert await self.process.wait() == 0


class RetryingCaller:
    """Repeats calls until a response arrives, as clients, runners and readers do."""

    def __init__(self, server: KilledApiServer, session: aiohttp.ClientSession) -> None:
        self._server, self._session = server, session

    async def call(self, method: str, path: str, body=None, bearer: str = "", **headers: str):
        """Return status and body of the first response below 500."""
        all_headers = {**self._server.headers, **headers}
        if bearer:
            all_headers["Authorization"] = f"Bearer {bearer}"
        while True:
            try:
                async with self._session.request(
                    method, self._server.url + path, json=body, headers=all_headers
                ) as response:
                    if response.status < 500:
                        return response.status, await response.json()
            except (aiohttp.ClientError, ValueError):
                pass
            await asyncio.sleep(0.05)

    async def follow(self, run: str) -> list[dict]:
        """Return all events of a run; reconnect until the 204."""
        events: list[dict] = []
        while True:
            all_headers = {**self._server.headers, **({"Last-Event-ID": events[-1]["id"]} if events else {})}
            block = b""
            try:
                async with self._session.get(
                    f"{self._server.url}/v1/runs/{run}/events", headers=all_headers
                ) as response:
                    if response.status == 204:
                        return events
                    async for line in response.content:
                        block += line
                        if line == b"\n":
                            events += messages(block)
                            block = b""
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)

    async def post_log_lines(self, run: str, token: str) -> None:
        """Post LOG_LINES lines as a runner; continue after the last acknowledged one."""
        acknowledged = 0
        while acknowledged < LOG_LINES:
            numbers = range(acknowledged + 1, min(acknowledged + 8, LOG_LINES) + 1)
            events = [{"seq": n, "type": "log", "time": None, "data": {"message": str(n)}} for n in numbers]
            body = {"pod_uid": "pod", "nonce": "nonce", "events": events}
            status, result = await self.call("POST", f"/internal/v1/runs/{run}/events", body, token)
            assert status == 200 and result["acknowledged"] >= acknowledged
            acknowledged = result["acknowledged"]
            await asyncio.sleep(0.03)

    async def create_runs(self, acknowledged_runs: dict[str, str], stop: asyncio.Event) -> None:
        """Create runs in sequence and record the acknowledged ones."""
        while not stop.is_set():
            order = secrets.token_hex(8)
            headers = {"Idempotency-Key": order}
            status, result = await self.call("POST", "/v1/runs", {"deployment": "crew"}, **headers)
            assert status == 201, result
            assert result["data"]["id"] not in acknowledged_runs
            acknowledged_runs[result["data"]["id"]] = order
            await asyncio.sleep(0.1)


async def create_claimed_runs(caller: RetryingCaller, kube) -> list[tuple[str, str]]:
    """Create runs claimed by their pods; return (name, token) pairs."""
    await caller.call("POST", "/v1/projects", {"name": "crew", "plan": "enterprise"})
    spec = {"project": "crew", "source": {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}}
    await kube.create(DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": spec})
    now = "2026-11-21T10:00:00Z"
    built = {"type": "Built", "status": "True", "reason": "Built", "message": "", "lastTransitionTime": now}
    plan = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11", "timeout": "1h"}
    status = {
        "phase": "Active",
        "plan": plan,
        "image": f"registry.example/x@sha256:{'0' * 64}",
        "conditions": [built],
    }
    await kube.patch(DEPLOYMENT, "dep-a", {"status": status}, "status")
    await kube.patch(PROJECT, "crew", {"status": {"activeDeployment": "dep-a", "activatedAt": now}}, "status")
    while (await caller.call("GET", "/v1/projects/crew"))[1]["data"]["active_deployment_id"] != "dep_a":
        await asyncio.sleep(0.05)
    result = []
    for _ in range(CLAIMED_RUNS):
        _, made = await caller.call("POST", "/v1/runs", {"deployment": "crew"})
        name = name_of(made["data"]["id"])
        uid = (await kube.get(RUN, name))["metadata"]["uid"]
        token = pod_tokens.mint(KEY, "run", kube.namespace, name, uid, int(time.time()) + 600)
        body = {"protocol": 1, "run_uid": uid, "pod_uid": "pod", "nonce": "nonce"}
        _, granted = await caller.call("POST", f"/internal/v1/runs/{name}/claim", body, token)
        assert granted["state"] == "granted", granted
        result.append((name, token))
    return result


@pytest.fixture
async def server(tmp_path, kube):
    """A running process; killed after the test."""
    result = KilledApiServer(tmp_path / "data", kube.namespace)
    await result.start()
    yield result
    if result.process.returncode is None:
        await result.kill()


async def test_kills_lose_nothing_acknowledged(server, kube):
    """Slow: kills and starts the process many times."""
    stop, acknowledged_runs = asyncio.Event(), {}
    limits = aiohttp.TCPConnector(limit=0)
    async with (
        # Includes four process starts of up to half a minute each on a busy machine.
        asyncio.timeout(400),
        aiohttp.ClientSession(connector=limits, timeout=aiohttp.ClientTimeout(total=390)) as session,
        asyncio.TaskGroup() as group,
    ):
        caller = RetryingCaller(server, session)
        runs = await create_claimed_runs(caller, kube)
        ids = [name.replace("-", "_", 1) for name, _ in runs]
        readers = [group.create_task(caller.follow(ids[n % CLAIMED_RUNS])) for n in range(READER_COUNT)]
        log_posters = [group.create_task(caller.post_log_lines(*run)) for run in runs]
        run_creators = [group.create_task(caller.create_runs(acknowledged_runs, stop)) for _ in range(2)]
        for _ in range(KILL_COUNT):
            await asyncio.sleep(0.7)
            await server.kill()
            await server.start()
        await asyncio.gather(*log_posters)
        stop.set()
        await asyncio.gather(*run_creators)
        for name, _ in runs:
            # Now: retention would delete older runs, which are counted below.
            now = format_second(datetime.now(UTC))
            ended = {"phase": "Failed", "completionTime": now, "durationMs": 5}
            await kube.patch(RUN, name, {"status": ended}, "status")
        event_lists = [await caller.follow(run) for run in ids]
        for number, reader in enumerate(readers):
            assert await reader == event_lists[number % CLAIMED_RUNS]
        for events in event_lists:
            assert [event["id"] for event in events] == [str(n) for n in range(1, LOG_LINES + 3)]
            assert [event["data"]["message"] for event in events[1:-1]] == [
                str(n + 1) for n in range(LOG_LINES)
            ]
            assert (events[0]["event"], events[-1]["event"]) == ("run.started", "run.failed")
        assert acknowledged_runs
        objects = {result["metadata"]["name"] for result in (await kube.list(RUN)).items}
        body = {"deployment": "crew"}
        for run, order in acknowledged_runs.items():
            assert (await caller.call("GET", f"/v1/runs/{run}"))[0] == 200 and name_of(run) in objects
            repeated = await caller.call("POST", "/v1/runs", body, **{"Idempotency-Key": order})
            assert (repeated[0], repeated[1]["data"]["id"]) == (201, run)
        assert len(objects) == len(acknowledged_runs) + CLAIMED_RUNS
        # SIGTERM ends open streams immediately; readers resume.
        _, made = await caller.call("POST", "/v1/runs", {"deployment": "crew"})
        path = f"{server.url}/v1/runs/{made['data']['id']}/events"
        streams = [await session.get(path, headers=server.headers) for _ in range(50)]
        await server.terminate()
        for response in streams:
            # A clean end: who is cut after the grace period gets an error. Idle streams get comments.
            assert (await response.content.read()).replace(b": keepalive\n\n", b"") == b"retry: 2000\n\n"
