"""The client at the edges of what an apiserver answers, and of what callers ask."""

import asyncio

import pytest
from aiohttp import web

from controller.leader_election import LeaderElection
from crds import kinds
from kube import errors
from tests.testbed.apiserver import serving


async def test_an_answer_that_is_no_json_is_an_unreachable_apiserver() -> None:
    """A proxy before the apiserver answers so; any other error would end the tasks that call."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>maintenance</html>")

    async with serving([web.get("/{path:.*}", page)]) as kube:
        with pytest.raises(errors.KubeUnavailable, match="not JSON"):
            await kube.list(kinds.POD)


async def test_no_object_has_an_empty_name() -> None:
    """Labels of pods that others create may be empty: their keys must not read a whole list."""

    async def listed(_: web.Request) -> web.Response:
        return web.json_response({"kind": "ProjectList", "metadata": {}, "items": []})

    async with serving([web.get(kinds.PROJECT.path("crews"), listed)]) as kube:
        assert await kube.get(kinds.PROJECT, "") is None


async def test_an_election_waits_for_no_connection_of_other_calls() -> None:
    slow, answered = asyncio.Event(), asyncio.Event()

    async def pods(_: web.Request) -> web.Response:
        slow.set()
        await answered.wait()
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    async def lease(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {"name": "crewyard-controller", "resourceVersion": "1"}})

    path = kinds.LEASE.path("crews", "crewyard-controller")
    routes = [web.get(kinds.POD.path("crews"), pods), web.get(path, lease), web.patch(path, lease)]
    async with serving(routes, connections=1) as kube:
        call = asyncio.create_task(kube.list(kinds.POD))
        await slow.wait()
        own = kube.apart()
        await LeaderElection(own, "a").acquire()
        assert not call.done()
        await own.close()
        answered.set()
        assert (await call).items == []
