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

from controller.pods.caller import authenticate
from controller.runtime import event_map
from controller.runtime.workqueue import ReconcileKey
from crds.objects import Pod
from crds.times import format_second

MAX_RESULTS = 1000
MAX_RESULTS_PER_DEPLOYMENT = 16
"""More than the pods of one build; a token cannot push out the results of other builds."""
PATH = "/internal/v1/builds/{deployment}/answer"


@dataclass(frozen=True)
class ReportedResult:
    """Result of a container, reported before its pod was seen to end; `reported_at` in epoch seconds."""

    container: str
    result: Mapping[str, Any]
    reported_at: float


class ReportedResults:
    """Reported results by the Deployment's uid in the token, then by pod uid; evicts the oldest Deployment.

    A token reports for pods of its own Deployment only: the reader names the owner of the pod.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[str, dict[str, ReportedResult]] = OrderedDict()

    def put(self, deployment_uid: str, pod_uid: str, result: ReportedResult) -> bool:
        """Store a result; the first one of a pod wins. False if the Deployment has too many."""
        results = self._results.setdefault(deployment_uid, {})
        if pod_uid not in results and len(results) >= MAX_RESULTS_PER_DEPLOYMENT:
            return False
        results.setdefault(pod_uid, result)
        while len(self._results) > MAX_RESULTS:
            self._results.popitem(last=False)
        return True

    def get(self, deployment_uid: str, pod_uid: str) -> ReportedResult | None:
        """Return the result that a pod of this Deployment reported, or None."""
        return self._results.get(deployment_uid, {}).get(pod_uid)


def routes(
    results: ReportedResults,
    token_keys: tuple[str, ...],
    add: Mapping[str, Callable[[ReconcileKey], None]],
    is_active: Callable[[], bool],
) -> list[web.RouteDef]:
    """Return the route for results, authorised by the build token of the deployment in the path.

    `add` enqueues keys, by namespace.
    """

    async def answer(request: web.Request) -> web.Response:
        name = request.match_info["deployment"]
        token = authenticate(request, "build", "deployment", token_keys, add, is_active)
        if isinstance(token, web.Response):
            return token
        try:
            body = json.loads(await request.read())
            result = ReportedResult(str(body["container"]), dict(body["words"]), time.time())
            pod_uid = str(body["pod_uid"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return web.json_response({"error": "pod_uid, container and words are required"}, status=400)
        if not results.put(token.uid, pod_uid, result):
            return web.json_response({"error": "this deployment has reported for too many pods"}, status=429)
        add[token.namespace](event_map.deployment(name))
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
