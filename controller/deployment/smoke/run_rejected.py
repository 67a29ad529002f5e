"""Decision about a smoke run that the apiserver rejects. Pure. Called by `controller.deployment.reconcile`.

As with build pods, a rejection may be temporary: retries last an hour, counted from the transition of the
condition SmokeTested.
"""

from datetime import datetime

from controller.config import ControllerConfig
from controller.deployment import status
from controller.deployment.build_result import BuildFailure
from controller.deployment.decide import ObservedDeployment, fail
from controller.deployment.pod_rejected import REFUSED_RETRY_SECONDS
from controller.runtime.decision import Decision
from crds import conditions, names
from crds.reasons import BuildReason
from crds.times import parse_time

_HINT = "Check [deployment] smoke, and the namespace's quota and policies; deploy again."


def run_refused(
    observed: ObservedDeployment, why: str, final: bool, now: datetime, config: ControllerConfig
) -> Decision:
    """Return the Decision after a rejection; `final` if the Run is invalid."""
    deployment = observed.deployment
    tested = conditions.find(deployment.conditions, conditions.SMOKE_TESTED) or {}
    passed = now - parse_time(str(tested["lastTransitionTime"]))
    left = config.timing.unschedulable - passed.total_seconds()
    if final or left <= 0:
        message = f"the smoke run cannot be created: {why}"
        return fail(observed, BuildFailure(BuildReason.SMOKE_FAILED, message, _HINT), now)
    message = f"The smoke run cannot be created: {why}"
    waits = status.smoke_running(deployment, names.smoke_run(deployment.uid), message, now)
    return Decision(status={**waits, "smokeRun": None}, requeue_after=min(REFUSED_RETRY_SECONDS, left + 1.0))
