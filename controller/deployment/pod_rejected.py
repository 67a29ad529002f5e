"""What is done where the apiserver does not take a build pod. Pure; called by the reconcile.

A quota or a policy can pass: it is tried again for an hour, counted from the first
refusal of a row. Since when, the condition Built says, which is False only then.
"""

from datetime import datetime

from controller.config import Config
from controller.deployment import build_result, status
from controller.deployment.decide import Observed, fail
from controller.runtime.decision import Decision, Note
from crds import conditions
from crds.objects import Deployment
from crds.reasons import BuildReason
from crds.times import parse_time

AGAIN = 10.0


def refused(seen: Observed, why: str, final: bool, now: datetime, config: Config) -> Decision:
    """The Decision after a refusal; `final` where the pod can never be taken as it is."""
    since = _since(seen.deployment)
    left = config.timing.unschedulable - (now - (since or now)).total_seconds()
    if final or left <= 0:
        hint = "Look at spec.build.resources of the Project, and at the namespace's quota and policies."
        failure = build_result.Failure(BuildReason.BUILD_FAILED, f"no build pod can be made: {why}", hint)
        return fail(seen, failure, now)
    message = f"The build pod was refused: {why}"
    begun = bool(seen.deployment.status.get("buildPod"))
    return Decision(
        status=status.refused(seen.deployment, message, begun, now),
        events=(Note(status.POD_REFUSED, message, True),) if since is None else (),
        requeue_after=min(AGAIN, left + 1.0),
    )


def _since(deployment: Deployment) -> datetime | None:
    """Since when its pods are refused; None where the last one was not."""
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    if built.get("status") != "False" or built.get("reason") != status.POD_REFUSED:
        return None
    return parse_time(str(built["lastTransitionTime"]))
