"""Answers of build pods by HTTP, a second before the kubelet tells them. Called by `controller.process`.

A hint, not a truth: the same words are the container's termination message, so
that nothing depends on this. The kubelet notices a container's end after one to
one and a half seconds, which would be most of a code-only build.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from controller.runtime import event_map
from controller.runtime.workqueue import Key
from crds import pod_tokens

MAX_BYTES = 8192
MOST = 1000
PATH = "/internal/v1/builds/{deployment}/answer"


@dataclass(frozen=True)
class Heard:
    """What a container said before its pod was seen to end; `at` in epoch seconds."""

    container: str
    words: Mapping[str, Any]
    at: float


class Answers:
    """The latest answers by the pod's uid; the oldest give way."""

    def __init__(self) -> None:
        self._heard: OrderedDict[str, Heard] = OrderedDict()

    def put(self, pod_uid: str, heard: Heard) -> None:
        """Keeps an answer; the first one of a pod stays."""
        self._heard.setdefault(pod_uid, heard)
        while len(self._heard) > MOST:
            self._heard.popitem(last=False)

    def get(self, pod_uid: str) -> Heard | None:
        """What that pod said."""
        return self._heard.get(pod_uid)


def routes(
    answers: Answers, token_key: str, namespace: str, add: Callable[[Key], None]
) -> list[web.RouteDef]:
    """The one call, under the build token of the deployment in its path."""

    async def answer(request: web.Request) -> web.Response:
        name = request.match_info["deployment"]
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            token = pod_tokens.verify(token_key, given, time.time())
        except pod_tokens.TokenInvalid:
            return web.json_response({"error": "the token is not valid"}, status=401)
        if (token.kind, token.namespace, token.name) != ("build", namespace, name):
            return web.json_response({"error": "the token is for something else"}, status=401)
        try:
            sent = json.loads(await request.read())
            heard = Heard(str(sent["container"]), dict(sent["words"]), time.time())
            answers.put(str(sent["pod_uid"]), heard)
        except (ValueError, KeyError, TypeError, RecursionError):
            return web.json_response({"error": "pod_uid, container and words are needed"}, status=400)
        add(event_map.deployment(name))
        return web.json_response({})

    return [web.post(PATH, answer)]
