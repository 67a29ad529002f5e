"""Checks of schedules in a request. Called by the routes of schedules and of projects."""

import re
from collections.abc import Mapping
from typing import Any

from api import errors
from api.http import casing
from api.http.json_encoding import encode
from api.questions.declared_input import check_declared_input
from api.routing.endpoint import EndpointCall
from api.store.index.projects import ProjectRow
from api.v1 import entrypoint
from crds import durations
from crds.runs import labels as run_labels
from crds.schedules.cron import CronInvalid
from crds.schedules.schedule import Schedule

_LABEL_NAME = re.compile(run_labels.USER_NAME_PATTERN, re.ASCII)


async def check_against_active(
    call: EndpointCall, project: ProjectRow, raw: Mapping[str, Any], path: str = ""
) -> None:
    """Raise 400 if the active deployment lacks the entrypoint's name or declares another input.

    As POST /v1/runs does. A suspended schedule, and one that the project already has, may be for an earlier
    deployment.
    """
    if raw.get("suspend") or raw in (project.spec.get("schedules") or ()):
        return
    active = await call.services.store.deployments.get(project.active) if project.active else None
    if active is None:
        return
    requested = raw.get("entrypoint")
    entrypoint.check_name(active, requested, f"{path}entrypoint")
    await check_declared_input(active.plan, requested, raw.get("input") or {}, f"{path}input")


def check_schedule(call: EndpointCall, project: str, raw: Mapping[str, Any], path: str = "") -> None:
    """Raise an error for a schedule that cannot run.

    400 for an impossible cron, zone, label or deadline, 403 without the scope for its entrypoint, 413 for its
    input. `path` comes before the names of the fields in errors.
    """
    try:
        Schedule(raw).ticks()
    except CronInvalid as error:
        raise errors.invalid(str(error), f"{path}{casing.snake(error.field)}") from error
    for name in Schedule(raw).labels:
        if not _LABEL_NAME.fullmatch(name):
            raise errors.invalid(run_labels.NAME_RULE, f"{path}labels")
    entrypoint.check_scope(call, project, raw.get("entrypoint"), f"{path}entrypoint")
    try:
        if (deadline := raw.get("startingDeadline")) is not None:
            durations.seconds(deadline)
    except ValueError as error:
        field = f"{path}starting_deadline"
        message = "must be a duration above zero in hours, minutes and seconds, for example 90s, 30m or 1h30m"
        raise errors.invalid(f"{field} {message}", field) from error
    limit = call.services.config.limits.input_inline_bytes
    if len(encode(raw.get("input") or {})) > limit:
        raise errors.HttpApiError(
            413,
            f"input is larger than {limit} bytes; pass a URL that the crew fetches",
            {"field": f"{path}input", "limit_bytes": limit},
        )


async def check_project_schedules(
    call: EndpointCall, project: str, spec: Mapping[str, Any], row: ProjectRow | None = None
) -> None:
    """Check the schedules in the body of a project; they start runs, so they need the scope run.

    `row`: the project that is changed.
    """
    schedules = spec.get("schedules")
    if schedules and not call.caller.may("run", project):
        raise errors.forbidden(
            "schedules needs the scope run; leave it out, or use a key that has it",
            field="schedules",
            required_scope="run",
        )
    for index, raw in enumerate(schedules or ()):
        path = f"schedules.{index}."
        check_schedule(call, project, raw, path)
        if row is not None:
            await check_against_active(call, row, raw, path)
