"""Build pod with a reported result, in the form that the kubelet reports later. Pure.

Called by `controller.deployment.reconcile`, so decisions handle one kind of pod only.
"""

import json
from datetime import UTC, datetime

from controller.deployment.reported_results import ReportedResult
from crds.objects import Pod
from crds.times import format_second


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
