"""A build pod as it will be seen once the kubelet has noticed that its container ended. Pure.

Called by `controller.deployment.reconcile`, so that decisions know one kind of pod only.
"""

import json
from datetime import UTC, datetime

from controller.deployment.reported_results import Heard
from crds.objects import Pod
from crds.times import format_second


def as_ended(pod: Pod, heard: Heard | None) -> Pod:
    """The pod with what it said as its container's end, or as it is where nothing new was said."""
    if heard is None or pod.finished or pod.deleting:
        return pod
    ended = {
        "exitCode": 0,
        "message": json.dumps(dict(heard.words)),
        "finishedAt": format_second(datetime.fromtimestamp(heard.at, UTC)),
    }
    others = [s for s in pod.status.get("containerStatuses") or () if s.get("name") != heard.container]
    statuses = [*others, {"name": heard.container, "state": {"terminated": ended}}]
    return Pod({**pod.raw, "status": {**pod.status, "phase": "Succeeded", "containerStatuses": statuses}})
