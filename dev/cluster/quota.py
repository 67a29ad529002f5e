"""Wait until the ResourceQuota of the crews' namespace counts the kinds of Crewyard.

Until then the kube-apiserver refuses every Project, Deployment and Run ("status unknown for quota"). The
quota controller learns new kinds within 30 seconds and counts at its next synchronization, by default every
five minutes. `uncounted` is pure.
"""

import time
from collections.abc import Iterable
from typing import Any

from dev.cluster.kube_client import KubeApi
from dev.errors import DevClusterError
from dev.progress import StepProgress

SYNC_PERIOD = {"resource-quota-sync-period": "10s"}
"""Flag of the kube-controller-manager for the clusters that `make up` starts itself."""
_QUOTAS = "/api/v1/namespaces/crews/resourcequotas"
# Two of the default periods.
_COUNT_TIMEOUT_SECONDS = 600
_PAUSE_SECONDS = 1.0


def uncounted(quotas: Iterable[dict[str, Any]]) -> list[str]:
    """Return the limited resources that have no count yet, sorted."""
    return sorted(
        {
            resource
            for quota in quotas
            for resource in quota["spec"].get("hard", {})
            if resource not in quota.get("status", {}).get("used", {})
        }
    )


def wait_counted(kube: KubeApi, progress: StepProgress) -> None:
    """Wait until every limited resource has a count. Raises DevClusterError after ten minutes."""
    if not uncounted(kube.call("GET", _QUOTAS)["items"]):
        return
    deadline = time.monotonic() + _COUNT_TIMEOUT_SECONDS
    with progress.step("quota (the controller of quotas has to find the new kinds)") as step:
        while waiting := uncounted(kube.call("GET", _QUOTAS)["items"]):
            step.detail = f"no count of {', '.join(waiting)}"
            if time.monotonic() > deadline:
                raise DevClusterError(
                    f"The ResourceQuota of the namespace crews has {step.detail}, so no Project can be "
                    "created. See: kubectl -n crews describe resourcequota; the kube-controller-manager's log"
                )
            time.sleep(_PAUSE_SECONDS)
        step.detail = ""
