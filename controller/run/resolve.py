"""Whether a Run can have a pod, from what is known of its Project and Deployment. Pure.

Called by `controller.run.decide` for each Run without a pod, and by the admission.
"""

from dataclasses import dataclass

from crds.names import env_secret
from crds.objects import Deployment, Project, Run
from crds.reasons import RunReason

NAMED = 8
"""Missing variables that a message names."""


@dataclass(frozen=True)
class Ready:
    """The Run can be admitted."""

    project: Project
    deployment: Deployment


@dataclass(frozen=True)
class Waiting:
    """The Run waits for its Deployment."""

    message: str
    project: Project
    deployment: Deployment


@dataclass(frozen=True)
class Refused:
    """The Run fails."""

    reason: RunReason
    message: str


Verdict = Ready | Waiting | Refused


def target(run: Run, project: Project | None) -> str | None:
    """The name of the Deployment that the Run executes: as recorded, as asked for, else the active one.

    The active one counts only while nothing was recorded: it is resolved when the
    Run is accepted, not when it starts.
    """
    return run.deployment or (project.active if project else None)


def accept(run: Run, project: Project | None, deployment: Deployment | None) -> Verdict:
    """What becomes of a Run without a pod; `deployment` is the one that `target` names."""
    wanted = run.deployment
    asked = run.spec.get("project")
    if wanted and deployment is None:
        return Refused(
            RunReason.DEPLOYMENT_NOT_FOUND,
            f"there is no deployment {wanted}; kubectl get cdep lists those that can be run",
        )
    if deployment is not None and asked and deployment.project != asked:
        return Refused(
            RunReason.DEPLOYMENT_NOT_FOUND,
            f"deployment {deployment.name} belongs to project {deployment.project}, not to {asked}; "
            "set only one of spec.project and spec.deployment",
        )
    if project is None:
        name = deployment.project if deployment else asked
        return Refused(
            RunReason.NO_ACTIVE_DEPLOYMENT,
            f"there is no project {name}; create it, deploy to it, then create a new Run",
        )
    if deployment is None:
        return Refused(
            RunReason.NO_ACTIVE_DEPLOYMENT,
            f"project {project.name} has no active deployment; wait for "
            f"kubectl get cdep to show one as Active, then create a new Run",
        )
    if deployment.failed:
        error = deployment.error or {}
        return Refused(
            RunReason.DEPLOYMENT_FAILED,
            f"deployment {deployment.name} failed ({error.get('reason', 'unknown')}): "
            f"{error.get('message', 'see its status')}",
        )
    if not deployment.built:
        return Waiting(f"deployment {deployment.name} is still being built", project, deployment)
    return Ready(project, deployment)


def needs_variables(ready: Ready) -> bool:
    """Whether the names in the project's Secret matter to this Run's pod."""
    return bool(ready.deployment.plan.get("envRequired") or (ready.project.spec.get("pod") or {}).get("env"))


def missing_variable(ready: Ready, variables: frozenset[str]) -> Refused | None:
    """The refusal where a required variable is in neither the Secret nor the Project's plain ones."""
    plain = {entry["name"] for entry in (ready.project.spec.get("pod") or {}).get("env") or ()}
    required = ready.deployment.plan.get("envRequired") or ()
    missing = [name for name in required if name not in variables and name not in plain]
    if not missing:
        return None
    # The next step must fit into the message too, however many there are.
    named = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
    return Refused(
        RunReason.MISSING_VARIABLE,
        f"the crew needs {named}; set it with PUT /v1/projects/{ready.project.name}/env/"
        f"{missing[0]} or in the Secret {env_secret(ready.project.name)}, then create a new Run",
    )
