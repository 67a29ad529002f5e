"""Lookup of objects by id, with the caller's authorization. Called by routes with an id in their path.

A caller may have different scopes in different projects, so the scope of the operation is checked again once
the object's project is known: 404 without access to the project, 403 if only the scope is missing.
"""

import re

from api import errors
from api.routing.endpoint import EndpointCall
from api.store.index.audit.change import describe
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.projects import ProjectRow
from api.store.index.runs.runs import RunDetail
from api.v1.fields import NAME_PATTERN
from crds import names
from crds.kinds import PROJECT
from crds.objects import Project
from kube import errors as kube_errors

_ID = re.compile(r"(?:run|dep)[-_][a-z0-9](?:[-a-z0-9]{0,46}[a-z0-9])?", re.ASCII)
_NAME = re.compile(NAME_PATTERN.rstrip("$") + r"\Z", re.ASCII)


def object_name(identifier: str, prefix: str) -> str | None:
    """Return the object name of an id (`run_ab12`, or `run-ab12` as kubectl shows it); None if malformed."""
    is_valid = identifier.startswith((prefix, prefix.replace("-", "_"))) and _ID.fullmatch(identifier)
    return names.name_of(identifier) if is_valid else None


async def run(call: EndpointCall, identifier: str | None = None) -> RunDetail:
    """Return the run in the path, or with this id.

    Raises the same 404 for a missing run and for one of another project.
    """
    identifier = call.path("id") if identifier is None else identifier
    name = object_name(identifier, names.RUN_PREFIX)
    row = await call.services.store.runs.get(name) if name else None
    if row is None or not call.caller.can_see(row.project):
        hint = "" if name else "; an id looks like run_ab12"
        raise errors.not_found(f"run {identifier[:100]!r} not found{hint}; GET /v1/runs lists runs")
    call.caller.require(call.scope, row.project)
    describe(row.project, identifier)
    return row


async def deployment(
    call: EndpointCall, identifier: str | None = None, field: str | None = None
) -> DeploymentRow:
    """Return the deployment in the path, or with the id in a `field` of the body. Raises 404 like `run`."""
    deployment_id = call.path("id") if identifier is None else identifier
    name = object_name(deployment_id, names.DEPLOYMENT_PREFIX)
    row = await call.services.store.deployments.get(name) if name else None
    if row is None or not call.caller.can_see(row.project):
        details = {} if field is None else {"field": field}
        hint = "" if name else "; an id looks like dep_ab12"
        message = f"deployment {deployment_id[:100]!r} not found{hint}; GET /v1/deployments lists deployments"
        raise errors.not_found(message, **details)
    call.caller.require(call.scope, row.project)
    describe(row.project, deployment_id)
    return row


async def project(call: EndpointCall) -> ProjectRow:
    """Return the project in the path. Raises 404 like `run`."""
    name = call.path("name")
    is_valid = len(name) <= names.MAX_NAME and _NAME.match(name)
    row = await call.services.store.projects.get(name) if is_valid and call.caller.can_see(name) else None
    if row is None:
        raise errors.not_found(f"project {name[:100]!r} not found; GET /v1/projects lists projects")
    call.caller.require(call.scope, row.name)
    describe(row.name, row.name)
    return row


async def _unseen(call: EndpointCall, name: str) -> list[Project]:
    """Return the Projects of that name, in all served namespaces that can be read."""
    services, found = call.services, []
    for namespace in services.config.served_namespaces:
        try:
            manifest = await services.kube.at(namespace).get(PROJECT, name)
        except kube_errors.KubeForbidden:
            if namespace == services.config.namespace:
                raise
            continue
        if manifest is not None:
            found.append(Project(manifest))
    return found


async def named_project(call: EndpointCall, name: str, field: str) -> ProjectRow:
    """Return the project that a body names. Raises 403 without access to it, else 404 if missing.

    Reads the object of a project that the index lacks: one that kubectl has just applied is found. The schema
    of the body has checked the name.
    """
    call.caller.require_project(name, field, call.scope)
    projects = call.services.store.projects
    row = await projects.get(name)
    if row is None:
        for project in await _unseen(call, name):
            await projects.observe(project)
        row = await projects.get(name)
    if row is None:
        raise errors.not_found(f"project {name} not found; create it with POST /v1/projects", field=field)
    describe(row.name)
    return row
