"""Pods that wait at this process for a build, by long poll. Called by `controller.process`.

The pod's annotation has the variables of its build, so a controller that restarted answers as well, and an
answer that got lost is given again.
"""

import asyncio
import json
from collections.abc import Callable, Mapping

from aiohttp import web

from controller.deployment.warm.binding import assigned_variables
from controller.pods.caller import authenticate
from crds import kinds
from crds.objects import Pod
from kube import errors
from kube.client import KubeClient

PATH = "/internal/v1/builders/{pod}/wait"
MAX_WAITERS = 512
"""Half of the connections of the controller's port."""
MAX_WAIT_SECONDS = 20
"""Less than the timeout of the pod's call."""


class Waiters:
    """Calls of pods that wait, by the pod's uid; the newest call of a pod gets the build."""

    def __init__(self) -> None:
        self._calls: dict[str, asyncio.Future[Mapping[str, str]]] = {}

    @property
    def full(self) -> bool:
        """Whether no further pod can wait."""
        return len(self._calls) >= MAX_WAITERS

    def assign(self, uid: str, variables: Mapping[str, str]) -> None:
        """Answer a pod that waits with the variables of its build."""
        call = self._calls.get(uid)
        if call is not None and not call.done():
            call.set_result(variables)

    async def wait(self, kube: KubeClient, name: str, uid: str, seconds: float) -> Mapping[str, str] | None:
        """Return the variables of a pod's build, None after `seconds`. Raises KeyError for an unknown pod."""
        call: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._calls[uid] = call
        try:
            # After the registration: a binding in between answers the call.
            raw = await kube.get(kinds.POD, name)
            pod = Pod(raw) if raw is not None else None
            if pod is None or pod.uid != uid or pod.deleting:
                raise KeyError(name)
            if (variables := assigned_variables(pod)) is not None:
                return variables
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError:
            return None
        finally:
            if self._calls.get(uid) is call:
                del self._calls[uid]


def routes(
    waiters: Waiters,
    token_keys: tuple[str, ...],
    kubes: Mapping[str, KubeClient],
    is_active: Callable[[], bool],
) -> list[web.RouteDef]:
    """Return the route of waiting pods, authorised by the token of the pod in the path.

    `kubes` are clients by namespace.
    """

    async def wait(request: web.Request) -> web.Response:
        name = request.match_info["pod"]
        token = authenticate(request, "builder", "pod", token_keys, kubes, is_active)
        if isinstance(token, web.Response):
            return token
        try:
            body = json.loads(await request.read())
            uid, seconds = str(body["pod_uid"]), min(int(body["wait_seconds"]), MAX_WAIT_SECONDS)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return web.json_response({"error": "pod_uid and wait_seconds are required"}, status=400)
        if waiters.full:
            return web.json_response({"error": "too many pods wait for a build"}, status=503)
        try:
            variables = await waiters.wait(kubes[token.namespace], name, uid, seconds)
        except KeyError:
            return web.json_response({"error": f"pod {name} waits for no build"}, status=404)
        except errors.KubeError as error:
            return web.json_response({"error": f"the kube-apiserver did not answer: {error}"}, status=503)
        if variables is None:
            return web.json_response({"state": "waiting"})
        return web.json_response({"state": "bound", "variables": dict(variables)})

    return [web.post(PATH, wait)]
