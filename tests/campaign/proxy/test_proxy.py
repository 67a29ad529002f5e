"""Each rule does to a connection what it says, before a real apiserver."""

import asyncio
import contextlib

import pytest

from crds.kinds import PROJECT, RUN
from kube import errors
from tests.campaign.proxy.recording import ListRecorder, StaleLists
from tests.campaign.proxy.rule import (
    CutBeforeRequest,
    DelayEvents,
    DropEvents,
    ErrorStorm,
    ExpiredWatch,
    LostResponse,
    RequestRecorder,
)

SOON = 60.0


def writes(call):
    return call.writes


def project(name):
    return {"metadata": {"name": name}, "spec": {}}


async def names(kube):
    return {item["metadata"]["name"] for item in (await kube.list(PROJECT)).items}


class EventCollector:
    """Names of the watch events received so far."""

    def __init__(self, kube):
        self._kube = kube
        self.seen, self.failure = [], None

    async def __aenter__(self):
        version = (await self._kube.list(PROJECT)).resource_version
        self._task = asyncio.create_task(self._watch(version))
        # A watch is open when it tells of something.
        await self._kube.create(PROJECT, project("open"))
        await self.until("open")
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _watch(self, version):
        async for event in self._kube.watch(PROJECT, version):
            self.seen.append((event.type, event.object["metadata"].get("name")))

    async def until(self, name, seconds=SOON):
        async with asyncio.timeout(seconds):
            while name not in [seen for _, seen in self.seen]:
                await asyncio.sleep(0.02)


async def test_requests_pass_and_are_counted_without_rules(proxied):
    count = RequestRecorder()
    proxied.proxy.rules.append(count)
    await proxied.kube.create(PROJECT, project("a"))
    await proxied.kube.patch(PROJECT, "a", {"spec": {"plan": "pro"}})
    assert await names(proxied.kube) == {"a"}
    with pytest.raises(errors.KubeNotFound):
        await proxied.kube.call("GET", RUN.path(proxied.kube.namespace, "run-none"))
    assert await proxied.kube.delete(PROJECT, "a")
    statuses = [(call.verb, call.kind, status) for call, status in count.calls]
    assert statuses == [
        ("create", "projects", 201),
        ("patch", "projects", 200),
        ("list", "projects", 200),
        ("get", "runs", 404),
        ("delete", "projects", 200),
    ]
    assert proxied.proxy.injected == 0


async def test_cut_request_and_lost_response(proxied):
    for rule, there in ((CutBeforeRequest(writes, 2), {"a0"}), (LostResponse(writes, 2), {"a0", "b0", "b1"})):
        proxied.proxy.rules[:] = [rule]
        letter = "a" if isinstance(rule, CutBeforeRequest) else "b"
        await proxied.kube.create(PROJECT, project(f"{letter}0"))
        with pytest.raises(errors.KubeUnavailable):
            await proxied.kube.create(PROJECT, project(f"{letter}1"))
        assert rule.injected == proxied.proxy.injected == 1
        assert await names(proxied.direct) == there


async def test_error_storm_replaces_responses(proxied):
    proxied.proxy.rules.append(ErrorStorm(writes, (429, 503, 500), nth=1))
    for _ in range(3):
        with pytest.raises(errors.KubeUnavailable):
            await proxied.kube.create(PROJECT, project("a"))
    assert await names(proxied.kube) == set()
    assert proxied.proxy.injected == 3


async def test_version_is_too_old_by_status_and_in_stream(proxied):
    proxied.proxy.rules.append(ExpiredWatch(nth=1))
    for _ in range(2):
        with pytest.raises(errors.Expired):
            async for _ in proxied.kube.watch(PROJECT, "1"):
                pass
    assert proxied.proxy.injected == 2


async def test_dropped_and_delayed_events(proxied):
    async with EventCollector(proxied.kube) as watching:
        proxied.proxy.rules[:] = [DropEvents(nth=2)]
        for name in ("one", "two", "three"):
            await proxied.direct.create(PROJECT, project(name))
        await watching.until("three")
        late = DelayEvents(1.0)
        proxied.proxy.rules[:] = [late]
        begun = asyncio.get_running_loop().time()
        await proxied.direct.create(PROJECT, project("late"))
        await watching.until("late")
        assert asyncio.get_running_loop().time() - begun >= 1.0
        assert [name for _, name in watching.seen] == ["open", "one", "three", "late"]


async def test_half_open_stream_is_silent_and_new_one_works(proxied):
    async with EventCollector(proxied.kube) as watching:
        assert proxied.proxy.make_half_open() == 1
        await proxied.direct.create(PROJECT, project("unheard"))
        with pytest.raises(TimeoutError):
            await watching.until("unheard", 2.0)
        assert not watching._task.done()
        assert await names(proxied.kube) == {"open", "unheard"}
        await proxied.direct.delete(PROJECT, "open")
        async with EventCollector(proxied.kube) as another:
            await another.until("open")
        assert proxied.proxy.injected == 1


async def test_stale_list_is_returned_n_times(proxied):
    recording = ListRecorder()
    proxied.proxy.rules.append(recording)
    await proxied.kube.create(PROJECT, project("old"))
    await names(proxied.kube)
    recording.stop()
    await proxied.kube.create(PROJECT, project("new"))
    stale = StaleLists(recording, 2)
    proxied.proxy.rules.append(stale)
    for expected in ({"old"}, {"old"}, {"old", "new"}):
        assert await names(proxied.kube) == expected
    assert stale.injected == 2
