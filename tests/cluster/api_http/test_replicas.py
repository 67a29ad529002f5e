"""Two API servers on one PostgreSQL and one bucket: either may be killed."""

import asyncio
import json
import signal
from datetime import UTC, datetime

import aiohttp
import pytest

from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.names import name_of
from crds.times import format_second
from tests.cluster.api_http.replica import Replica, generate_admin_key
from tests.unit.api.store.conftest import postgres, s3_server

__all__ = ["postgres", "s3_server"]

SOURCE = {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}
# Now: retention deletes records of runs that ended a month ago.
NOW = format_second(datetime.now(UTC))


@pytest.fixture
async def replicas(tmp_path, kube, postgres, s3_server):
    """Two ready replicas."""
    settings = {
        **s3_server.environment,
        "CREWYARD_DATABASE_URL": postgres.database("filled"),
        "CREWYARD_BLOBS_URL": f"s3://{s3_server.new().name}",
    }
    admin_key = generate_admin_key()
    replicas = [Replica(kube.namespace, tmp_path / name, settings, admin_key) for name in ("one", "two")]
    await asyncio.gather(*(replica.start() for replica in replicas))
    yield replicas
    for replica in replicas:
        await replica.stop(signal.SIGKILL)


async def until(check, seconds=120):
    async with asyncio.timeout(seconds):
        while not (result := await check()):
            await asyncio.sleep(0.05)
        return result


async def create_run(kube, one, other):
    """Create runs at one replica, read them at the other; return the last one's id and uid."""
    spec = {"name": "crew", "source": {"git": {"url": SOURCE["git"]["url"]}}}
    assert (await one.call_until_available("POST", "/v1/projects", spec))[0] == 201
    assert (await other.call_until_available("GET", "/v1/projects/crew"))[0] == 200
    await kube.create(
        DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": {"project": "crew", "source": SOURCE}}
    )
    built = {"type": "Built", "status": "True", "reason": "Built", "message": "", "lastTransitionTime": NOW}
    image = f"registry.example/x@sha256:{'0' * 64}"
    plan = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"}
    status = {"phase": "Active", "image": image, "conditions": [built], "plan": plan}
    await kube.patch(DEPLOYMENT, "dep-a", {"status": status}, "status")
    active = {"activeDeployment": "dep-a", "activatedAt": NOW}
    await kube.patch(PROJECT, "crew", {"status": active}, "status")

    async def is_active():
        _, found = await other.call_until_available("GET", "/v1/projects/crew")
        return found["data"]["active_deployment_id"]

    await until(is_active)
    for _ in range(5):
        body = {"deployment": "crew", "input": {"a": 1}}
        status, result = await one.call_until_available("POST", "/v1/runs", body)
        assert status == 201, result
        run = result["data"]["id"]
        assert (await other.call_until_available("GET", f"/v1/runs/{run}"))[0] == 200
    return run, (await kube.get(RUN, name_of(run)))["metadata"]["uid"]


class ReplicaEventReader:
    """Follows a run's events at one replica, after the last event it has."""

    def __init__(self, run):
        self.run, self.events = run, []

    async def follow(self, replica):
        """Read to the end of the stream; return its status, 0 if the connection broke."""
        headers = {"Authorization": f"Bearer {replica.admin_key.text}", "Accept": "text/event-stream"}
        if self.events:
            headers["Last-Event-ID"] = str(self.events[-1][0])
        number = kind = None
        try:
            async with (
                aiohttp.ClientSession(replica.url) as session,
                session.get(f"/v1/runs/{self.run}/events", headers=headers, timeout=None) as response,
            ):
                async for line in response.content:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    if name == "id":
                        number = int(value)
                    elif name == "event":
                        kind = value
                    elif name == "data":
                        self.events.append((number, kind, json.loads(value).get("message")))
                return response.status
        except aiohttp.ClientError:
            return 0


async def post_events(replicas, run, uid, numbers):
    """Send events as the pod, alternating between the replicas until one accepts."""
    for number in numbers:
        event = {"seq": number, "type": "log", "time": None, "data": {"message": f"line {number}"}}
        attempt = number
        async with asyncio.timeout(120):
            while not await replicas[attempt % 2].call_as_pod(run, uid, "events", {"events": [event]}):
                attempt += 1
                await asyncio.sleep(0.05)


async def test_streams_resume_after_a_replica_is_killed(replicas, kube):
    """Slow: starts and kills processes while streams are open."""
    one, two = replicas
    await until(lambda: asyncio.sleep(0, one.is_leader or two.is_leader))
    leader, other = (one, two) if one.is_leader else (two, one)
    run, uid = await create_run(kube, other, leader)
    name = name_of(run)
    claim = {"protocol": 1, "run_uid": uid}
    first = await other.call_as_pod(name, uid, "claim", claim)
    assert first and first["state"] == "granted", other.log[-3:]
    assert (await leader.call_as_pod(name, uid, "claim", claim))["state"] == "granted"
    moving, staying = ReplicaEventReader(run), ReplicaEventReader(run)
    at_leader = asyncio.create_task(moving.follow(leader))
    at_other = asyncio.create_task(staying.follow(other))
    await post_events(replicas, name, uid, range(1, 31))
    await until(lambda: asyncio.sleep(0, len(moving.events) >= 20))
    # Kill the leader, which also serves the stream, while events arrive.
    writing = asyncio.create_task(post_events(replicas, name, uid, range(31, 61)))
    await leader.stop(signal.SIGKILL)
    assert await at_leader == 0
    again = asyncio.create_task(moving.follow(other))
    await writing
    await until(lambda: asyncio.sleep(0, other.is_leader))
    status = {"phase": "Succeeded", "startTime": NOW, "completionTime": NOW, "durationMs": 5}
    await kube.patch(RUN, name, {"status": status}, "status")
    assert await asyncio.wait_for(asyncio.gather(again, at_other), 120) == [200, 200]
    await leader.start()
    late = ReplicaEventReader(run)
    assert await late.follow(leader) == 200
    for reader in (moving, staying, late):
        assert [number for number, _, _ in reader.events] == list(range(1, 63))
        kinds = [kind for _, kind, _ in reader.events]
        assert kinds == ["run.started", *["log"] * 60, "run.completed"]
        assert [text for _, kind, text in reader.events if kind == "log"] == [
            f"line {number}" for number in range(1, 61)
        ]
    assert await moving.follow(leader) == 204
