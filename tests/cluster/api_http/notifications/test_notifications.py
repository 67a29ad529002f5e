"""Notifications through the whole API server, to a real receiver on loopback."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web
from standardwebhooks import Webhook

from api.store.sql.schema import projects
from crds.kinds import PROJECT, RUN, SECRET
from crds.names import ANNOTATION_FAILING_NOTIFICATIONS, name_of
from crds.times import format_second
from tests.cluster.api_http.test_kill import KilledApiServer, RetryingCaller
from tests.testbed.ports import free_port

KEY = "whsec_" + base64.b64encode(hashlib.sha256(b"test").digest()).decode()
GOOD = "127.0.0.2"
EVENTS = ["run.failed", "run.canceled", "deployment.active"]


@pytest.fixture
def settings() -> dict[str, str]:
    return {"CREWYARD_NET_ALLOW": f"{GOOD}/32"}


class VerifyingReceiver:
    """A receiver that verifies each message; `answer` is called for each and returns the status."""

    def __init__(self) -> None:
        self.port, self.taken = free_port(), asyncio.Queue()
        self.answer = None
        self._runner = None

    @property
    def url(self) -> str:
        return f"http://{GOOD}:{self.port}/in"

    async def start(self) -> None:
        async def receive(request: web.Request) -> web.Response:
            content = await request.read()
            event = Webhook(KEY).verify(content, dict(request.headers))
            status = 204 if self.answer is None else await self.answer()
            await self.taken.put((request.headers["webhook-id"], event, status))
            return web.Response(status=status)

        application = web.Application()
        application.router.add_post("/in", receive)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, GOOD, self.port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


@pytest.fixture
async def receiver() -> AsyncIterator[VerifyingReceiver]:
    made = VerifyingReceiver()
    yield made
    await made.stop()


async def add_secret(kube, **annotations: str) -> None:
    metadata = {"name": "hook", "annotations": annotations}
    data = {"secret": base64.b64encode(KEY.encode()).decode()}
    await kube.create(SECRET, {"metadata": metadata, "data": data})


def notification(url: str, name: str = "chat") -> dict:
    return {"name": name, "url": url, "secret_ref": {"name": "hook"}, "events": EVENTS}


async def end_run(kube, name: str, phase: str = "Failed") -> None:
    """Create a Run and write its end, as the controller does."""
    spec = {"project": "crew", "deployment": "dep-a", "input": {}}
    project = await kube.get(PROJECT, "crew")
    owner = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "name": "crew"}
    owner["uid"] = project["metadata"]["uid"]
    await kube.create(RUN, {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec})
    ended = {"phase": phase, "project": "crew", "deployment": "dep-a", "durationMs": 5}
    ended["completionTime"] = format_second(datetime.now(UTC))
    if phase == "Failed":
        ended["error"] = {"reason": "CrewFailed", "message": "It failed."}
    await kube.patch(RUN, name, {"status": ended}, "status")


async def deliveries(testbed) -> list[dict]:
    return await testbed.data("GET", "/v1/projects/crew/deliveries")


async def wait_for(testbed, condition) -> list[dict]:
    while not condition(found := await deliveries(testbed)):
        await asyncio.sleep(0.1)
    return found


async def test_a_receiver_that_recovers_gets_the_object_as_get_shows_it(testbed, receiver):
    await add_secret(testbed.kube)
    body = {"name": "crew", "notifications": [notification(receiver.url)]}
    made = await testbed.data("POST", "/v1/projects", body)
    assert made["notifications"] == [notification(receiver.url)] and made["failing_notifications"] == []
    statuses = iter([503])

    async def answer() -> int:
        return next(statuses, 204)

    receiver.answer = answer
    await receiver.start()
    await end_run(testbed.kube, "run-a")
    first, again = await receiver.taken.get(), await receiver.taken.get()
    assert (first[2], again[2]) == (503, 204)
    assert first[:2] == again[:2]
    event = again[1]
    shown = await testbed.data("GET", "/v1/runs/run_a")
    assert (event["type"], event["data"]) == ("run.failed", shown)
    assert event["timestamp"] == shown["completed_at"]
    [found] = await wait_for(testbed, lambda found: found[0]["status"] == "delivered")
    expected = {"id": again[0], "notification": "chat", "type": "run.failed", "object_id": "run_a"}
    assert found.items() >= {**expected, "attempts": 2, "response_status": 204, "error": None}.items()
    # A key that may not deploy cannot redeliver.
    path = f"/v1/projects/crew/deliveries/{found['id']}/redeliver"
    key = await testbed.data("POST", "/v1/api-keys", {"name": "k", "scopes": ["run"]})
    reader = {"Authorization": f"Bearer {key['key']}"}
    assert (await testbed.call("POST", path, headers=reader))[0] == 403
    status, body, _ = await testbed.call("POST", path)
    assert (status, body["data"]["status"]) == (202, "pending")
    assert (await receiver.taken.get())[:2] == again[:2]
    path = "/v1/projects/crew/deliveries/msg_missing/redeliver"
    assert (await testbed.call("POST", path))[0] == 404


async def test_refused_receivers_and_secrets_show_the_reason(testbed, receiver):
    await receiver.start()
    await add_secret(testbed.kube, **{"crewyard.dev/hosts": f"{GOOD}:{receiver.port},127.0.0.1"})
    missing = {**notification(receiver.url, "missing"), "secret_ref": {"name": "other"}}
    notifications = [
        notification("http://127.0.0.1/", "private"),
        notification("http://hooks.example.com/", "elsewhere"),
        missing,
        notification(receiver.url),
    ]
    await testbed.data("POST", "/v1/projects", {"name": "crew", "notifications": notifications})
    await end_run(testbed.kube, "run-a", "Canceled")
    assert (await receiver.taken.get())[1]["data"]["status"] == "canceled"
    found = await wait_for(testbed, lambda found: len(found) == 4 and all(one["attempts"] for one in found))
    errors = {one["notification"]: one["error"] for one in found}
    assert "not in the networks" in errors["private"]
    assert "crewyard.dev/hosts" in errors["elsewhere"]
    assert errors["missing"] == "the Secret other does not exist; create it"
    assert errors["chat"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "ftp://hooks.example.com/"}, "url"),
        ({"url": "https://user:pw@hooks.example.com/"}, "url"),
        ({"url": f"https://hooks.example.com/{'x' * 2048}"}, "url"),
        ({"name": "Chat"}, "name"),
        ({"events": ["run.started"]}, "events"),
        ({"events": []}, "events"),
    ],
)
async def test_an_invalid_notification_is_refused_with_its_field(testbed, change, field):
    body = {"name": "crew", "notifications": [{**notification("https://hooks.example.com/"), **change}]}
    status, found, _ = await testbed.call("POST", "/v1/projects", body)
    # The API writes notifications.0.url, the kube-apiserver notifications[0].url.
    place = found["error"]["details"]["field"].replace("[0]", ".0")
    assert status == 400 and place.startswith(f"notifications.0.{field}")


async def test_notifications_need_the_scope_admin(testbed):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    key = await testbed.data("POST", "/v1/api-keys", {"name": "k", "scopes": ["deploy", "run"]})
    body = {"notifications": [notification("https://hooks.example.com/")]}
    headers = {"Authorization": f"Bearer {key['key']}"}
    status, found, _ = await testbed.call("PATCH", "/v1/projects/crew", body, headers=headers)
    assert (status, found["error"]["details"]["field"]) == (403, "notifications")
    assert (await testbed.call("PATCH", "/v1/projects/crew", body))[0] == 200


async def test_kills_before_and_during_a_delivery_lose_none(tmp_path, kube, receiver, monkeypatch):
    """A killed API server delivers after its restart.

    Slow: starts the API server three times.
    """
    monkeypatch.setenv("CREWYARD_NET_ALLOW", f"{GOOD}/32")
    server = KilledApiServer(tmp_path / "data", kube.namespace)
    await server.start()
    await add_secret(kube)
    try:
        async with asyncio.timeout(300), aiohttp.ClientSession() as session:
            caller = RetryingCaller(server, session)
            body = {"name": "crew", "notifications": [notification(receiver.url)]}
            assert (await caller.call("POST", "/v1/projects", body))[0] == 201
            await end_run(kube, "run-a")
            # No receiver listens yet: the delivery is stored, and the process is killed before it succeeds.
            while not (await caller.call("GET", "/v1/projects/crew/deliveries"))[1]["data"]:
                await asyncio.sleep(0.1)
            await server.kill()
            killed = asyncio.Event()

            async def kill_once() -> int:
                if not killed.is_set():
                    killed.set()
                    await server.kill()
                return 204

            receiver.answer = kill_once
            await receiver.start()
            await server.start()
            # The receiver has the message, and the process is killed before it records that.
            await killed.wait()
            await server.start()
            messages = [await receiver.taken.get()]
            while True:
                _, found = await caller.call("GET", "/v1/projects/crew/deliveries")
                if found["data"][0]["status"] == "delivered":
                    break
                await asyncio.sleep(0.1)
            while not receiver.taken.empty():
                messages.append(receiver.taken.get_nowait())
            assert len(messages) == 2, json.dumps(messages)
            assert {identity for identity, _, _ in messages} == {found["data"][0]["id"]}
            assert messages[0][1] == messages[1][1]
            assert name_of(messages[0][1]["data"]["id"]) == "run-a"
    finally:
        if server.process.returncode is None:
            await server.kill()


async def test_the_name_of_a_failing_notification_is_recorded_on_the_project(testbed, receiver):
    await add_secret(testbed.kube)
    await testbed.data(
        "POST", "/v1/projects", {"name": "crew", "notifications": [notification(receiver.url)]}
    )

    async def recorded() -> str | None:
        metadata = (await testbed.kube.get(PROJECT, "crew"))["metadata"]
        return metadata.get("annotations", {}).get(ANNOTATION_FAILING_NOTIFICATIONS)

    failing = {"type": "NotificationsFailing", "reason": "DeliveryFailed", "message": "", "status": "True"}
    failing["lastTransitionTime"] = "2026-11-21T10:00:00Z"
    for names, conditions in ((["chat"], [failing]), (None, [])):
        async with testbed.store.database.write() as connection:
            await connection.execute(projects.update().values(failing_notifications=names))
        while await recorded() != ("chat" if names else None):
            await asyncio.sleep(0.1)
        await testbed.patch_status(PROJECT, "crew", conditions=conditions)
