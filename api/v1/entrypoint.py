"""Checks of a requested entrypoint. Called by the routes of runs, schedules and projects."""

from api import errors
from api.routing.endpoint import EndpointCall
from api.store.index.deployments.deployments import DeploymentRow
from crds import entrypoints, names


def check_scope(call: EndpointCall, project: str, requested: str | None, field: str = "entrypoint") -> None:
    """Raise 403 for an entrypoint other than a name from a caller without the scope deploy in the project.

    An entrypoint can be any importable object, also `os:environ.copy`: it is code and sees all variables.
    A name only selects an entrypoint of the deployment's own configuration.
    """
    if requested is None or entrypoints.is_name(requested) or call.caller.may("deploy", project):
        return
    raise errors.forbidden(
        "an entrypoint other than a name of the deployment's configuration needs the scope deploy; leave "
        "it out, or use a key that has it",
        field=field,
        required_scope="deploy",
    )


def check_name(deployment: DeploymentRow, requested: str | None, field: str = "entrypoint") -> None:
    """Raise 400 for a name that the deployment does not have."""
    if problem := entrypoints.problem(requested, deployment.plan):
        raise errors.invalid(f"deployment {names.id_of(deployment.name)} {problem}", field)
