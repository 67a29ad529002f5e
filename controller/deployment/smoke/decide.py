"""Decision about a Deployment that has an image and waits for its smoke run. Pure.

The Run is created once, by a name that follows from the Deployment, and recorded afterwards; one that was
deleted after that is not created again. Called by `controller.deployment.decide`.
"""

from datetime import datetime

from controller.deployment import status
from controller.deployment.build_result import BuildFailure
from controller.deployment.smoke.run_object import run_object
from controller.runtime import event_map
from controller.runtime.decision import Create, Decision, ObjectEvent, Patch
from crds import kinds, names
from crds.objects import Deployment, Run
from crds.reasons import BuildReason, RunPhase

WAIT_RETRY_SECONDS = 60.0
"""The end of the Run enqueues its Deployment; this covers a lost event."""
_HINT = "Read the run's log; deploy a source that runs, or change [deployment] smoke."


def decide(deployment: Deployment, run: Run | None, now: datetime) -> Decision | BuildFailure:
    """Return the Decision for a Deployment whose smoke run is `run` (None: there is none), or its failure."""
    name = names.smoke_run(deployment.uid)
    if run is None and deployment.status.get("smokeRun"):
        return BuildFailure(BuildReason.SMOKE_FAILED, f"the smoke run {name} was deleted", _HINT)
    if run is None or not run.ended:
        message = f"The smoke run {name} decides whether the deployment can become active."
        return Decision(
            create=(Create(kinds.RUN, run_object(deployment)),) if run is None else (),
            status=status.smoke_running(deployment, name, message, now),
            requeue_after=WAIT_RETRY_SECONDS,
        )
    if run.phase == RunPhase.SUCCEEDED:
        return Decision(
            status=status.smoke_succeeded(deployment, name, now),
            events=(ObjectEvent(status.SMOKE_SUCCEEDED, f"The smoke run {name} succeeded."),),
            enqueue=(event_map.project(deployment.project),),
        )
    if run.phase == RunPhase.CANCELED:
        return BuildFailure(BuildReason.SMOKE_FAILED, f"the smoke run {name} was canceled", _HINT)
    error = run.error or {}
    why = f"{error.get('reason', 'unknown')}: {error.get('message', 'see its status')}"
    return BuildFailure(BuildReason.SMOKE_FAILED, f"the smoke run {name} failed: {why}", _HINT)


def cancel(run: Run | None) -> tuple[Patch, ...]:
    """Return the patch that cancels the smoke run of a canceled Deployment."""
    if run is None or run.ended or run.cancel or run.deleting:
        return ()
    return (Patch(kinds.RUN, run.name, {"spec": {"cancel": True}}, run.resource_version, None),)
