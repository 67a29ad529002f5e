"""Build results that pods report by HTTP, a second before the kubelet. Called by `controller.process`.

An optimisation: the container's termination message has the same content, so nothing depends on
it. The kubelet notices the end of a container after 1 to 1.5 s, which would be most of a code-only build.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from controller.runtime import event_map
from controller.runtime.workqueue import ReconcileKey
from crds import pod_tokens
from crds.objects import Pod
from crds.times import format_second

MAX_BYTES = 8192
MAX_RESULTS = 1000
PATH = "/internal/v1/builds/{deployment}/answer"


@dataclass(frozen=True)
class ReportedResult:
    """Result of a container, reported before its pod was seen to end; `reported_at` in epoch seconds."""

    container: str
    result: Mapping[str, Any]
    reported_at: float


class ReportedResults:
    """Latest reported results by pod uid; evicts the oldest."""

    def __init__(self) -> None:
        self._results: OrderedDict[str, ReportedResult] = OrderedDict()

    def put(self, pod_uid: str, result: ReportedResult) -> None:
        """Store a result; the first one of a pod wins."""
        self._results.setdefault(pod_uid, result)
        while len(self._results) > MAX_RESULTS:
            self._results.popitem(last=False)

    def get(self, pod_uid: str) -> ReportedResult | None:
        """Return the result that the pod reported, or None."""
        return self._results.get(pod_uid)


def routes(
    results: ReportedResults, token_key: str, namespace: str, add: Callable[[ReconcileKey], None]
) -> list[web.RouteDef]:
    """Return the route for results, authorised by the build token of the deployment in the path."""

    async def answer(request: web.Request) -> web.Response:
        name = request.match_info["deployment"]
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            token = pod_tokens.verify(token_key, bearer, time.time())
        except pod_tokens.TokenInvalid:
            return web.json_response({"error": "the token is invalid or has expired"}, status=401)
        if (token.kind, token.namespace, token.name) != ("build", namespace, name):
            return web.json_response({"error": "the token is not for this deployment"}, status=401)
        try:
            body = json.loads(await request.read())
            result = ReportedResult(str(body["container"]), dict(body["words"]), time.time())
            results.put(str(body["pod_uid"]), result)
        except (ValueError, KeyError, TypeError, RecursionError):
            return web.json_response({"error": "pod_uid, container and words are required"}, status=400)
        add(event_map.deployment(name))
        return web.json_response({})

    return [web.post(PATH, answer)]


def as_ended(pod: Pod, result: ReportedResult | None) -> Pod:
    """Return the pod with its reported result as termination message; unchanged if there is none."""
    if result is None or pod.finished or pod.deleting:
        return pod
    ended = {
        "exitCode": 0,
        "message": json.dumps(dict(result.result)),
        "finishedAt": format_second(datetime.fromtimestamp(result.reported_at, UTC)),
    }
    others = [s for s in pod.status.get("containerStatuses") or () if s.get("name") != result.container]
    statuses = [*others, {"name": result.container, "state": {"terminated": ended}}]
    return Pod({**pod.raw, "status": {**pod.status, "phase": "Succeeded", "containerStatuses": statuses}})
