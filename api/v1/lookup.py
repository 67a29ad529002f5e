"""Objects by their id, as far as the caller may see them. Called by routes with an id in their path.

A caller may hold other scopes in one project than in another, so what the operation needs is asked for
again where the object's project is known: 404 where it is not held at all, 403 where the scope is missing.
"""

import re

from api import errors
from api.routing.endpoint import Call
from api.store.index.deployments import DeploymentRow
from api.store.index.projects import ProjectRow
from api.store.index.runs.runs import RunDetail
from api.v1.schemas import NAME_PATTERN
from crds import names

_ID = re.compile(r"(?:run|dep)_[a-z0-9](?:[-a-z0-9]{0,46}[a-z0-9])?", re.ASCII)
_NAME = re.compile(NAME_PATTERN.rstrip("$") + r"\Z", re.ASCII)


def object_name(identifier: str, prefix: str) -> str | None:
    """The object's name of a well-formed id, or None: a malformed one is nobody's."""
    well = identifier.startswith(prefix.replace("-", "_")) and _ID.fullmatch(identifier)
    return names.name_of(identifier) if well else None


async def run(call: Call) -> RunDetail:
    """The run in the path. Raises 404 alike for one that is not there and one of a foreign project."""
    identifier = call.path("id")
    name = object_name(identifier, names.RUN_PREFIX)
    row = await call.services.store.runs.get(name) if name else None
    if row is None or not call.caller.holds(row.project):
        raise errors.not_found(f"there is no run {identifier[:100]!r}; GET /v1/runs lists them")
    call.caller.require(call.scope, row.project)
    return row


async def deployment(call: Call, identifier: str | None = None, field: str | None = None) -> DeploymentRow:
    """The deployment in the path, or of the id given (in a `field` of the body). Raises 404 as `run` does."""
    found = call.path("id") if identifier is None else identifier
    name = object_name(found, names.DEPLOYMENT_PREFIX)
    row = await call.services.store.deployments.get(name) if name else None
    if row is None or not call.caller.holds(row.project):
        where = {} if field is None else {"field": field}
        message = f"there is no deployment {found[:100]!r}; GET /v1/deployments lists them"
        raise errors.not_found(message, **where)
    call.caller.require(call.scope, row.project)
    return row


async def project(call: Call) -> ProjectRow:
    """The project in the path. Raises 404 as `run` does."""
    name = call.path("name")
    good = len(name) <= names.MAX_NAME and _NAME.match(name)
    row = await call.services.store.projects.get(name) if good and call.caller.holds(name) else None
    if row is None:
        raise errors.not_found(f"there is no project {name[:100]!r}; GET /v1/projects lists them")
    call.caller.require(call.scope, row.name)
    return row


async def named_project(call: Call, name: str, field: str) -> ProjectRow:
    """The project a body names. Raises 403 where the key is not for it, be it there or not, else 404."""
    call.caller.require_project(name, field, call.scope)
    row = await call.services.store.projects.get(name)
    if row is None:
        raise errors.not_found(f"there is no project {name}; POST /v1/projects makes one", field=field)
    return row
