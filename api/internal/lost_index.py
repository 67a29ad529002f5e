"""What an index that was lost, or restored from a backup, no longer knows of a run. Called by the claim.

A crew starts at most once: whoever may have started it before the loss is not given it again.
"""

from datetime import UTC, datetime

from api.internal.context import Yard
from api.store.index.claims.claims import Asked
from crds.kinds import POD
from crds.objects import Pod, Run

GIVEN = "the run was given to a pod before the service's index was lost or restored"
OLDER = "the pod is older than the service's index, which was restored; create a new Run"


async def refusal(yard: Yard, live: Run, asked: Asked) -> str | None:
    """Why a run that nobody is known to have is refused all the same; None: it is not.

    `live` is the object as etcd has it. Raises Unavailable: ask again.
    """
    if live.claim is not None:
        await yard.store.record.observe(live, datetime.now(UTC))
        return GIVEN
    limit = yard.config.claims_not_before
    if limit is None:
        return None
    found = await yard.kube.get(POD, live.name)
    if found is None or Pod(found).uid != asked.pod_uid or Pod(found).created < limit:
        return OLDER
    return None
