"""Resolution of a Run's Project and Deployment: ready, waiting or refused. Pure.

Called by `controller.run.observe` for each Run without a pod, and by the admission.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crds import entrypoints
from crds.names import env_secret, smoke_run
from crds.objects import Deployment, Project, Run
from crds.reasons import RunReason
from crds.runs import budget

MAX_NAMED_VARIABLES = 8
"""Maximum number of missing variables named in a message."""


@dataclass(frozen=True)
class RunReady:
    """Run that can be admitted."""

    project: Project
    deployment: Deployment


@dataclass(frozen=True)
class RunWaiting:
    """Run that waits for its Deployment."""

    message: str
    project: Project
    deployment: Deployment


@dataclass(frozen=True)
class RunRefused:
    """Run that fails."""

    reason: RunReason
    message: str


Resolution = RunReady | RunWaiting | RunRefused


def target(run: Run, project: Project | None) -> str | None:
    """Return the name of the Deployment to execute: the recorded, the specified, else the active one.

    The active one counts only until a name is recorded: it is fixed when the Run is resolved, not
    when it starts.
    """
    return run.deployment or (project.active if project else None)


def resolve(run: Run, project: Project | None, deployment: Deployment | None, now: datetime) -> Resolution:
    """Resolve a Run without a pod; `deployment` is the one that `target` names."""
    deployment_name = run.deployment
    project_name = run.spec.get("project")
    if deployment_name and deployment is None:
        return RunRefused(
            RunReason.DEPLOYMENT_NOT_FOUND,
            f"deployment {deployment_name} does not exist; list the deployments with kubectl get cdep",
        )
    if deployment is not None and project_name and deployment.project != project_name:
        return RunRefused(
            RunReason.DEPLOYMENT_NOT_FOUND,
            f"deployment {deployment.name} belongs to project {deployment.project}, not to {project_name}; "
            "set only one of spec.project and spec.deployment",
        )
    if project is None:
        name = deployment.project if deployment else project_name
        return RunRefused(
            RunReason.NO_ACTIVE_DEPLOYMENT,
            f"project {name} does not exist; create it, deploy to it, then create a new Run",
        )
    if deployment is None:
        return RunRefused(
            RunReason.NO_ACTIVE_DEPLOYMENT,
            f"project {project.name} has no active deployment; wait for kubectl get cdep to show one as "
            "Active, or raise spec.activation of a built one, then create a new Run",
        )
    if deployment.failed:
        error = deployment.error or {}
        return RunRefused(
            RunReason.DEPLOYMENT_FAILED,
            f"deployment {deployment.name} failed ({error.get('reason', 'unknown')}): "
            f"{error.get('message', 'see its status')}; run another deployment, or deploy a corrected crew",
        )
    if not deployment.built and not _is_smoke_run(run, deployment):
        return RunWaiting(f"deployment {deployment.name} is still being built", project, deployment)
    if problem := entrypoints.problem(run.spec.get("entrypoint"), deployment.plan):
        return RunRefused(
            RunReason.ENTRYPOINT_NOT_FOUND,
            f"deployment {deployment.name} {problem}; create a new Run with one of those in spec.entrypoint",
        )
    problem_of_budget = budget.month_problem(project, budget.recorded_use(project), now)
    if problem_of_budget is not None and problem_of_budget.exceeded:
        return RunRefused(RunReason.BUDGET_EXCEEDED, problem_of_budget.message)
    return RunReady(project, deployment)


def _is_smoke_run(run: Run, deployment: Deployment) -> bool:
    """Return whether it is the run that the Deployment must pass before it counts as built."""
    return deployment.awaits_smoke_run and run.name == smoke_run(deployment.uid)


def variable_names(secret: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the keys of the Secret with a project's variables; none without a Secret."""
    return frozenset((secret or {}).get("data") or {})


def needs_variables(ready: RunReady) -> bool:
    """Return whether this Run's pod depends on the keys of the project's Secret."""
    return bool(ready.deployment.plan.get("envRequired") or (ready.project.spec.get("pod") or {}).get("env"))


def missing_variable(ready: RunReady, variables: frozenset[str]) -> RunRefused | None:
    """Return the refusal if a required variable is in neither the Secret nor the Project's plain ones."""
    plain = {entry["name"] for entry in (ready.project.spec.get("pod") or {}).get("env") or ()}
    required = ready.deployment.plan.get("envRequired") or ()
    missing = [name for name in required if name not in variables and name not in plain]
    if not missing:
        return None
    # Bounded, so the next step fits into the message too.
    named = ", ".join(missing[:MAX_NAMED_VARIABLES]) + (
        f" and {len(missing) - MAX_NAMED_VARIABLES} more" if len(missing) > MAX_NAMED_VARIABLES else ""
    )
    return RunRefused(
        RunReason.MISSING_VARIABLE,
        f"the crew needs {named}; set it with crewyard env set -p {ready.project.name} {missing[0]} or in "
        f"the Secret {env_secret(ready.project.name)}, then create a new Run",
    )
