"""Deletion of a finished pod a while after its end, once its Run has ended.

Finished pods cost the node and the apiserver; the Run itself may stay for days. The key has all that the
deletion needs, because the cache soon evicts ended Runs and finished pods. A pod whose end this process has
not seen is deleted with its Run. `EndedPods.reconcile` is called by `controller.runtime.worker`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.pods.termination import ended_at
from controller.runtime.apply import Applier
from controller.runtime.decision import Delete
from crds import kinds
from crds.objects import Pod


def seconds_to_deletion(pod: Pod | None, now: datetime, ttl_seconds: float) -> float | None:
    """Return in how many seconds to delete the pod of an ended Run; None while it is not finished. Pure."""
    if pod is None or not pod.finished or pod.deleting:
        return None
    due = (ended_at(pod) or pod.created) + timedelta(seconds=ttl_seconds)
    return max(0.0, (due - now).total_seconds())


@dataclass(frozen=True)
class EndedPods:
    """Deletes pods by the keys of `event_map.ended_pod`, which are added for pods of ended Runs alone."""

    applier: Applier

    async def reconcile(self, name: str) -> None:
        """Delete a pod if it still exists. Raises `kube.errors`; the worker then retries."""
        pod, _, uid = name.partition("/")
        await self.applier.delete(Delete(kinds.POD, pod, uid))
