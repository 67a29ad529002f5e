"""Decision about a build pod that cannot be created. Pure. Called by `controller.deployment.reconcile`.

A quota or a policy may be temporary: retries last an hour, counted from the first consecutive
rejection. The condition Built, False only then, records its time.
"""

from datetime import datetime

from controller.config import ControllerConfig
from controller.deployment import build_result, status
from controller.deployment.decide import ObservedDeployment, fail
from controller.runtime.decision import Decision, ObjectEvent
from crds import conditions
from crds.objects import Deployment
from crds.reasons import BuildReason
from crds.times import parse_time

REFUSED_RETRY_SECONDS = 10.0


def pod_refused(
    observed: ObservedDeployment,
    why: str,
    final: bool,
    now: datetime,
    config: ControllerConfig,
    hint: str = "Check spec.build.resources of the Project, and the namespace's quota and policies.",
) -> Decision:
    """Return the Decision after a rejection, `why` as a sentence; `final` if the pod is invalid."""
    since = _refused_since(observed.deployment)
    left = config.timing.unschedulable - (now - (since or now)).total_seconds()
    if final or left <= 0:
        failure = build_result.BuildFailure(BuildReason.BUILD_FAILED, why, hint)
        return fail(observed, failure, now)
    message = f"{why[:1].upper()}{why[1:]}"
    has_started = bool(observed.deployment.status.get("buildPod"))
    return Decision(
        status=status.pod_refused(observed.deployment, message, has_started, now),
        events=(ObjectEvent(status.POD_REFUSED, message, True),) if since is None else (),
        requeue_after=min(REFUSED_RETRY_SECONDS, left + 1.0),
    )


def pod_prevented(observed: ObservedDeployment, why: str, now: datetime) -> Decision:
    """Return the Decision while an admission webhook does not answer.

    It sets no deadline, since nothing has rejected the pod.
    """
    deployment, message = observed.deployment, f"The apiserver could not create the build pod: {why}"
    if deployment.status.get("buildPod"):
        waits = status.building(deployment, None, status.POD_REFUSED, message, now)
    else:
        waits = status.pending(deployment, status.POD_REFUSED, message, now)
    return Decision(status=waits, requeue_after=REFUSED_RETRY_SECONDS)


def _refused_since(deployment: Deployment) -> datetime | None:
    """Return the time of the first consecutive rejection; None if the last pod was accepted."""
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    if built.get("status") != "False" or built.get("reason") != status.POD_REFUSED:
        return None
    return parse_time(str(built["lastTransitionTime"]))
