"""Claims after the index was lost or restored from a backup. Called by `api.internal.claim`.

A crew starts at most once: a run that a pod may have started before the loss is denied.
"""

from datetime import UTC, datetime

from api.internal.context import InternalContext
from api.internal.run_pod import find_pod
from api.store.index.claims.claims import ClaimRequest
from crds.objects import Run
from kube.client import KubeClient

CLAIMED_BEFORE_LOSS = "a pod claimed the run before the service's index was lost or restored"
POD_OLDER_THAN_INDEX = "the pod is older than the restored index of the service; create a new Run"


async def denial_reason(
    context: InternalContext, kube: KubeClient, live: Run, claim_request: ClaimRequest
) -> str | None:
    """Return why a run without a claim in the index is denied, or None if it is not.

    `live` is the object just read from the apiserver. Raises Unavailable: the pod retries.
    """
    if live.claim is not None:
        await context.store.run_writer.observe(live, datetime.now(UTC))
        return CLAIMED_BEFORE_LOSS
    limit = context.config.claims_not_before
    if limit is None:
        return None
    pod = await find_pod(kube, live.name, claim_request.pod_uid)
    if pod is None or pod.assigned < limit:
        return POD_OLDER_THAN_INDEX
    return None
