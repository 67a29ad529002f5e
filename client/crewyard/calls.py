"""Every API call as a value. Pure; `crewyard.client` documents each call."""

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from crewyard import call, models
from crewyard.call import Call, Page
from crewyard.errors import WrongValue

Json = Mapping[str, Any]


def _segment(text: str) -> str:
    """Return `text` as one percent-encoded path segment. Raises WrongValue if it cannot be one."""
    if text in ("", ".", ".."):
        raise WrongValue(f"{text!r} is not a name")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise WrongValue(f"{text!r} has characters that UTF-8 cannot encode") from None


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _query(**values: object) -> dict[str, str]:
    return {name: str(value) for name, value in _given(**values).items()}


def _idempotency_header(key: str | None) -> dict[str, str]:
    """Return the Idempotency-Key header; a random key if `key` is None. Raises WrongValue."""
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise WrongValue(f"the idempotency key {key!r} must be of printable ASCII characters")
    return {"Idempotency-Key": str(uuid.uuid4()) if key is None else key}


def list_projects(number: int, per_page: int) -> Call[Page[models.Project]]:
    """GET /v1/projects."""
    return Call("GET", "/v1/projects", call.page, _query(page=number, per_page=per_page))


def get_project(name: str) -> Call[models.Project]:
    """GET /v1/projects/{name}."""
    return Call("GET", f"/v1/projects/{_segment(name)}", call.data)


def create_project(name: str, spec: Json) -> Call[models.Project]:
    """POST /v1/projects."""
    return Call("POST", "/v1/projects", call.data, body={"name": name, **spec}, repeatable=False)


def change_project(name: str, spec: Json) -> Call[models.Project]:
    """PATCH /v1/projects/{name}."""
    return Call("PATCH", f"/v1/projects/{_segment(name)}", call.data, body=dict(spec))


def delete_project(name: str) -> Call[None]:
    """DELETE /v1/projects/{name}."""
    return Call("DELETE", f"/v1/projects/{_segment(name)}", call.nothing)


def list_variables(project: str, number: int, per_page: int) -> Call[Page[models.Variable]]:
    """GET /v1/projects/{name}/env."""
    path = f"/v1/projects/{_segment(project)}/env"
    return Call("GET", path, call.page, _query(page=number, per_page=per_page))


def replace_variables(project: str, variables: Mapping[str, str]) -> Call[Page[models.Variable]]:
    """PUT /v1/projects/{name}/env."""
    body = {"variables": dict(variables)}
    return Call("PUT", f"/v1/projects/{_segment(project)}/env", call.page, body=body)


def set_variable(project: str, name: str, value: str) -> Call[models.Variable]:
    """PUT /v1/projects/{name}/env/{variable}."""
    path = f"/v1/projects/{_segment(project)}/env/{_segment(name)}"
    return Call("PUT", path, call.data, body={"value": value})


def remove_variable(project: str, name: str) -> Call[None]:
    """DELETE /v1/projects/{name}/env/{variable}."""
    return Call("DELETE", f"/v1/projects/{_segment(project)}/env/{_segment(name)}", call.nothing)


def list_schedules(project: str, number: int, per_page: int) -> Call[Page[models.Schedule]]:
    """GET /v1/projects/{name}/schedules."""
    path = f"/v1/projects/{_segment(project)}/schedules"
    return Call("GET", path, call.page, _query(page=number, per_page=per_page))


def set_schedule(project: str, name: str, spec: Json) -> Call[models.Schedule]:
    """PUT /v1/projects/{name}/schedules/{schedule}."""
    path = f"/v1/projects/{_segment(project)}/schedules/{_segment(name)}"
    return Call("PUT", path, call.data, body=dict(spec))


def remove_schedule(project: str, name: str) -> Call[None]:
    """DELETE /v1/projects/{name}/schedules/{schedule}."""
    path = f"/v1/projects/{_segment(project)}/schedules/{_segment(name)}"
    return Call("DELETE", path, call.nothing)


def list_deliveries(project: str, number: int, per_page: int) -> Call[Page[models.NotificationDelivery]]:
    """GET /v1/projects/{name}/deliveries."""
    path = f"/v1/projects/{_segment(project)}/deliveries"
    return Call("GET", path, call.page, _query(page=number, per_page=per_page))


def redeliver(project: str, delivery: str) -> Call[models.NotificationDelivery]:
    """POST /v1/projects/{name}/deliveries/{id}/redeliver."""
    path = f"/v1/projects/{_segment(project)}/deliveries/{_segment(delivery)}/redeliver"
    return Call("POST", path, call.data)


def get_usage(project: str, since: str | None, until: str | None) -> Call[models.Usage]:
    """GET /v1/projects/{name}/usage."""
    query = _query(**{"from": since, "to": until})
    return Call("GET", f"/v1/projects/{_segment(project)}/usage", call.data, query)


def list_usage(
    since: str | None, until: str | None, number: int, per_page: int
) -> Call[Page[models.ProjectUsage]]:
    """GET /v1/usage."""
    query = _query(**{"from": since, "to": until}, page=number, per_page=per_page)
    return Call("GET", "/v1/usage", call.page, query)


def announce_upload(project: str, size: int, sha256: str | None) -> Call[models.Upload]:
    """POST /v1/uploads."""
    body = {"project": project, "size": size, **({"sha256": sha256} if sha256 else {})}
    return Call("POST", "/v1/uploads", call.data, body=body)


def list_deployments(
    project: str, status: str | None, number: int, per_page: int
) -> Call[Page[models.DeploymentItem]]:
    """GET /v1/deployments."""
    query = _query(project=project, status=status, page=number, per_page=per_page)
    return Call("GET", "/v1/deployments", call.page, query)


def get_deployment(identifier: str, wait: int | None = None) -> Call[models.Deployment]:
    """GET /v1/deployments/{id}."""
    path = f"/v1/deployments/{_segment(identifier)}"
    return Call("GET", path, call.data, _query(wait=wait), wait_seconds=wait or 0)


def create_deployment(body: Json, idempotency_key: str | None) -> Call[models.DeploymentCreated]:
    """POST /v1/deployments."""
    return Call(
        "POST", "/v1/deployments", call.data, body=dict(body), headers=_idempotency_header(idempotency_key)
    )


def roll_back(identifier: str) -> Call[models.Deployment]:
    """POST /v1/deployments/{id}/rollback."""
    return Call("POST", f"/v1/deployments/{_segment(identifier)}/rollback", call.data)


def get_inputs(identifier: str) -> Call[models.DeploymentInputs]:
    """GET /v1/deployments/{id}/inputs."""
    return Call("GET", f"/v1/deployments/{_segment(identifier)}/inputs", call.data)


def cancel_deployment(identifier: str) -> Call[models.Deployment]:
    """POST /v1/deployments/{id}/cancel."""
    return Call("POST", f"/v1/deployments/{_segment(identifier)}/cancel", call.data)


def list_runs(
    project: str | None,
    deployment: str | None,
    status: str | None,
    number: int,
    per_page: int,
    label: str | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
) -> Call[Page[models.RunItem]]:
    """GET /v1/runs."""
    query = _query(
        project=project,
        deployment=deployment,
        status=status,
        label=label,
        created_after=created_after,
        created_before=created_before,
        page=number,
        per_page=per_page,
    )
    return Call("GET", "/v1/runs", call.page, query)


def get_run(identifier: str, wait: int | None = None) -> Call[models.Run]:
    """GET /v1/runs/{id}."""
    path = f"/v1/runs/{_segment(identifier)}"
    return Call("GET", path, call.data, _query(wait=wait), wait_seconds=wait or 0)


def start_run(
    deployment: str,
    given: Json | None,
    entrypoint: str | None,
    timeout: str | None,
    idempotency_key: str | None,
    config: Json | None = None,
    context: Json | None = None,
    wait: int | None = None,
    labels: Mapping[str, str] | None = None,
    traceparent: str | None = None,
) -> Call[models.RunCreated]:
    """POST /v1/runs."""
    body = _given(
        deployment=deployment,
        input=given,
        entrypoint=entrypoint,
        timeout=timeout,
        config=config,
        context=context,
        labels=labels,
    )
    headers = _idempotency_header(idempotency_key)
    headers |= {} if wait is None else {"Prefer": f"wait={wait}"}
    headers |= {} if traceparent is None else {"traceparent": traceparent}
    return Call("POST", "/v1/runs", call.data, body=body, headers=headers, wait_seconds=wait or 0)


def rerun(
    identifier: str,
    given: Json | None,
    deployment: str | None,
    idempotency_key: str | None,
    entrypoint: str | None = None,
) -> Call[models.RunCreated]:
    """POST /v1/runs/{id}/rerun."""
    return Call(
        "POST",
        f"/v1/runs/{_segment(identifier)}/rerun",
        call.data,
        body=_given(input=given, deployment=deployment, entrypoint=entrypoint),
        headers=_idempotency_header(idempotency_key),
    )


def cancel_run(identifier: str) -> Call[models.Run]:
    """POST /v1/runs/{id}/cancel."""
    return Call("POST", f"/v1/runs/{_segment(identifier)}/cancel", call.data)


def erase_run(identifier: str) -> Call[None]:
    """DELETE /v1/runs/{id}."""
    return Call("DELETE", f"/v1/runs/{_segment(identifier)}", call.nothing)


def erase_deployment(identifier: str) -> Call[None]:
    """DELETE /v1/deployments/{id}."""
    return Call("DELETE", f"/v1/deployments/{_segment(identifier)}", call.nothing)


def answer_run(identifier: str, request: str, value: object) -> Call[models.InputReceived]:
    """POST /v1/runs/{id}/inputs/{request_id}."""
    path = f"/v1/runs/{_segment(identifier)}/inputs/{_segment(request)}"
    return Call("POST", path, call.data, body={"value": value}, repeatable=False)


def list_events(identifier: str, number: int, per_page: int) -> Call[Page[models.Event]]:
    """GET /v1/runs/{id}/events, as JSON."""
    path = f"/v1/runs/{_segment(identifier)}/events"
    return Call("GET", path, call.page, _query(page=number, per_page=per_page))


def list_artifacts(run: str, number: int, per_page: int) -> Call[Page[models.Artifact]]:
    """GET /v1/runs/{id}/artifacts."""
    path = f"/v1/runs/{_segment(run)}/artifacts"
    return Call("GET", path, call.page, _query(page=number, per_page=per_page))


def list_keys(number: int, per_page: int) -> Call[Page[models.Key]]:
    """GET /v1/api-keys."""
    return Call("GET", "/v1/api-keys", call.page, _query(page=number, per_page=per_page))


def create_key(body: Json) -> Call[models.KeyCreated]:
    """POST /v1/api-keys."""
    return Call("POST", "/v1/api-keys", call.data, body=dict(body), repeatable=False)


def revoke_key(identifier: str) -> Call[None]:
    """DELETE /v1/api-keys/{id}."""
    return Call("DELETE", f"/v1/api-keys/{_segment(identifier)}", call.nothing)


def events_path(run: str) -> str:
    """Return the path of a run's event stream."""
    return f"/v1/runs/{_segment(run)}/events"


def build_log_path(deployment: str) -> str:
    """Return the path of a deployment's build log stream."""
    return f"/v1/deployments/{_segment(deployment)}/logs"


def run_log_path(run: str) -> str:
    """Return the path of a run's log as text."""
    return f"/v1/runs/{_segment(run)}/logs"


def artifact_path(run: str, name: str) -> str:
    """Return the path of an artifact; slashes in its name stay path separators."""
    parts = name.split("/")
    return f"/v1/runs/{_segment(run)}/artifacts/{'/'.join(_segment(part) for part in parts)}"


def get_caller() -> Call[models.Whoami]:
    """GET /v1/whoami."""
    return Call("GET", "/v1/whoami", call.data)


def get_installation() -> Call[models.Installation]:
    """GET /v1/installation."""
    return Call("GET", "/v1/installation", call.data)


def audit_query(
    project: str | None, actor: str | None, since: str | None, until: str | None
) -> dict[str, str]:
    """Return the filters of GET /v1/audit."""
    return _query(project=project, actor=actor) | _query(**{"from": since, "to": until})


def list_audit(filters: Mapping[str, str], number: int, per_page: int) -> Call[Page[models.AuditRecord]]:
    """GET /v1/audit."""
    return Call("GET", "/v1/audit", call.page, {**filters, **_query(page=number, per_page=per_page)})
