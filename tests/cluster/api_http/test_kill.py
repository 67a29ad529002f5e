"""The facade is killed again and again, with 200 streams open, runs being posted and runners talking.

Nothing that it acknowledged is lost, and every stream goes on exactly where it was, to one terminal event.
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
SPEAKING, READERS, WHOLE, KILLS = 4, 200, 300, 3


class Facade:
    """The process, which is killed and comes back at the same place."""

    def __init__(self, place, namespace: str) -> None:
        drawn = api_keys.generate()
        port = free_port()
        record = {"id": drawn.key_id, "hash": drawn.hash, "scopes": ["admin"], "plan": "enterprise"}
        self.url = f"http://127.0.0.1:{port}"
        self.headers = {"Authorization": f"Bearer {drawn.text}"}
        self._environment = {
            **os.environ,
            "CREWYARD_DATA": str(place),
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

    async def stop(self) -> float:
        """Seconds that an orderly end took."""
        before = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert await self.process.wait() == 0
        return time.monotonic() - before


class RetryingCaller:
    """Calls until there is an answer: what a client, a runner and a reader do."""

    def __init__(self, facade: Facade, session: aiohttp.ClientSession) -> None:
        self._facade, self._session = facade, session

    async def call(self, method: str, path: str, body=None, bearer: str = "", **headers: str):
        """Status and body of the first answer that is none of a service that is away."""
        sent = {**self._facade.headers, **headers}
        if bearer:
            sent["Authorization"] = f"Bearer {bearer}"
        while True:
            try:
                async with self._session.request(
                    method, self._facade.url + path, json=body, headers=sent
                ) as answer:
                    if answer.status < 500:
                        return answer.status, await answer.json()
            except (aiohttp.ClientError, ValueError):
                pass
            await asyncio.sleep(0.05)

    async def follow(self, run: str) -> list[dict]:
        """The events of a run over as many streams as it takes, to the 204."""
        seen: list[dict] = []
        while True:
            sent = {**self._facade.headers, **({"Last-Event-ID": seen[-1]["id"]} if seen else {})}
            block = b""
            try:
                async with self._session.get(
                    f"{self._facade.url}/v1/runs/{run}/events", headers=sent
                ) as answer:
                    if answer.status == 204:
                        return seen
                    async for line in answer.content:
                        block += line
                        if line == b"\n":
                            seen += messages(block)
                            block = b""
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)

    async def talk(self, run: str, token: str) -> None:
        """A runner that says WHOLE lines, from the last acknowledged one on."""
        acknowledged = 0
        while acknowledged < WHOLE:
            numbers = range(acknowledged + 1, min(acknowledged + 8, WHOLE) + 1)
            events = [{"seq": n, "type": "log", "time": None, "data": {"message": str(n)}} for n in numbers]
            body = {"pod_uid": "pod", "nonce": "nonce", "events": events}
            status, found = await self.call("POST", f"/internal/v1/runs/{run}/events", body, token)
            assert status == 200 and found["acknowledged"] >= acknowledged
            acknowledged = found["acknowledged"]
            await asyncio.sleep(0.03)

    async def post(self, kept: dict[str, str], over: asyncio.Event) -> None:
        """Runs, one after the other; those that were acknowledged."""
        while not over.is_set():
            order = secrets.token_hex(8)
            headers = {"Idempotency-Key": order}
            status, found = await self.call("POST", "/v1/runs", {"deployment": "crew"}, **headers)
            assert status == 201, found
            assert found["data"]["id"] not in kept
            kept[found["data"]["id"]] = order
            await asyncio.sleep(0.1)


async def speaking(caller: RetryingCaller, kube) -> list[tuple[str, str]]:
    """Runs that their pods have claimed, each with its name and token."""
    await caller.call("POST", "/v1/projects", {"name": "crew", "plan": "enterprise"})
    spec = {"project": "crew", "source": {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}}
    await kube.create(DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": spec})
    when = "2026-11-21T10:00:00Z"
    built = {"type": "Built", "status": "True", "reason": "Built", "message": "", "lastTransitionTime": when}
    plan = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11", "timeout": "1h"}
    status = {
        "phase": "Active",
        "plan": plan,
        "image": f"registry.example/x@sha256:{'0' * 64}",
        "conditions": [built],
    }
    await kube.patch(DEPLOYMENT, "dep-a", {"status": status}, "status")
    await kube.patch(
        PROJECT, "crew", {"status": {"activeDeployment": "dep-a", "activatedAt": when}}, "status"
    )
    while (await caller.call("GET", "/v1/projects/crew"))[1]["data"]["active_deployment_id"] != "dep_a":
        await asyncio.sleep(0.05)
    found = []
    for _ in range(SPEAKING):
        _, made = await caller.call("POST", "/v1/runs", {"deployment": "crew"})
        name = name_of(made["data"]["id"])
        uid = (await kube.get(RUN, name))["metadata"]["uid"]
        token = pod_tokens.mint(KEY, "run", kube.namespace, name, uid, int(time.time()) + 600)
        body = {"protocol": 1, "run_uid": uid, "pod_uid": "pod", "nonce": "nonce"}
        _, granted = await caller.call("POST", f"/internal/v1/runs/{name}/claim", body, token)
        assert granted["state"] == "granted", granted
        found.append((name, token))
    return found


@pytest.fixture
async def facade(tmp_path, kube):
    """A process that has gone at the end, however the test went."""
    found = Facade(tmp_path / "data", kube.namespace)
    await found.start()
    yield found
    if found.process.returncode is None:
        await found.kill()


async def test_kills_lose_nothing_acknowledged(facade, kube):
    over, kept = asyncio.Event(), {}
    limits = aiohttp.TCPConnector(limit=0)
    async with (
        # Four starts of a process are in it, each of which may take half a minute on a busy machine.
        asyncio.timeout(400),
        aiohttp.ClientSession(connector=limits, timeout=aiohttp.ClientTimeout(total=390)) as session,
        asyncio.TaskGroup() as group,
    ):
        caller = RetryingCaller(facade, session)
        runs = await speaking(caller, kube)
        ids = [name.replace("-", "_", 1) for name, _ in runs]
        readers = [group.create_task(caller.follow(ids[n % SPEAKING])) for n in range(READERS)]
        talking = [group.create_task(caller.talk(*run)) for run in runs]
        posting = [group.create_task(caller.post(kept, over)) for _ in range(2)]
        for _ in range(KILLS):
            await asyncio.sleep(0.7)
            await facade.kill()
            await facade.start()
        await asyncio.gather(*talking)
        over.set()
        await asyncio.gather(*posting)
        for name, _ in runs:
            # Now: what ended long ago is taken away at the next look, and is counted below.
            when = format_second(datetime.now(UTC))
            ended = {"phase": "Failed", "completionTime": when, "durationMs": 5}
            await kube.patch(RUN, name, {"status": ended}, "status")
        whole = [await caller.follow(run) for run in ids]
        for number, reader in enumerate(readers):
            assert await reader == whole[number % SPEAKING]
        for events in whole:
            assert [event["id"] for event in events] == [str(n) for n in range(1, WHOLE + 3)]
            assert [event["data"]["message"] for event in events[1:-1]] == [str(n + 1) for n in range(WHOLE)]
            assert (events[0]["event"], events[-1]["event"]) == ("run.started", "run.failed")
        assert kept
        objects = {found["metadata"]["name"] for found in (await kube.list(RUN)).items}
        body = {"deployment": "crew"}
        for run, order in kept.items():
            assert (await caller.call("GET", f"/v1/runs/{run}"))[0] == 200 and name_of(run) in objects
            again = await caller.call("POST", "/v1/runs", body, **{"Idempotency-Key": order})
            assert (again[0], again[1]["data"]["id"]) == (201, run)
        assert len(objects) == len(kept) + SPEAKING
        # An orderly stop ends open streams at once, for their readers to resume.
        _, made = await caller.call("POST", "/v1/runs", {"deployment": "crew"})
        path = f"{facade.url}/v1/runs/{made['data']['id']}/events"
        open_ = [await session.get(path, headers=facade.headers) for _ in range(50)]
        assert await facade.stop() < 8
        for answer in open_:
            # It says that it is alive where nothing comes for a while.
            assert (await answer.content.read()).replace(b": keepalive\n\n", b"") == b"retry: 2000\n\n"
