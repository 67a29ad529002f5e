"""Generates the OpenAPI 3.1 document from operations and schemas.

Pure. Called by `api.openapi.routes`, which serves it, and by tests, which check every response
against it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from api import errors
from api.http.operation import Operation, ResponseSpec
from api.http.query import Parameter
from api.openapi import headers
from api.openapi.references import Components
from api.v1 import path_parameters
from api.v1.fields import response_object

_PLACEHOLDER = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_ERROR_SCHEMA = response_object(
    "Error",
    {
        "error": response_object(
            "Failure",
            {
                "code": {"type": "string", "description": "A stable code for programs."},
                "message": {"type": "string", "description": "A sentence for users, with the next step."},
                "details": {
                    "type": "object",
                    "description": "Details of the error; `field` names the invalid field.",
                },
            },
        )
    },
)
_TAGS = {
    "projects": "Projects",
    "env": "Environment variables",
    "schedules": "Schedules",
    "deliveries": "Notifications",
    "usage": "Usage",
    "uploads": "Deployments",
    "deployments": "Deployments",
    "runs": "Runs",
    "api-keys": "API keys",
    "installation": "Installation",
    "whoami": "API keys",
    "hooks": "Webhooks",
}
_API_DESCRIPTION = (
    "Deploys and runs crews (multi-agent Python programs) on Kubernetes. A single object is returned as "
    "`{data}`, a list as `{data, pagination}`, an error as `{error: {code, message, details}}`. "
    "The security requirement of an operation names the scope that the key needs; `admin` includes all "
    "scopes, and every key may read. A caller can have different scopes in different projects."
)
_ERROR_DESCRIPTIONS = {
    400: "Invalid request; `error.details.field` names the parameter or field.",
    401: "No valid API key.",
    403: "The key lacks the scope, or access to the project in the request.",
    404: "The object does not exist, or the key has no access to it.",
    405: "The method is not allowed here.",
    406: "The response is not available in a media type of the Accept header.",
    408: "The request body did not arrive in time.",
    409: "The request conflicts with the current state.",
    413: "The request body is too large.",
    415: "The media type of the request body is not supported.",
    416: "The range is beyond the end of the file.",
    429: "Too many requests per minute or too many streams, or a queue or the upload quota is full.",
    500: "Internal error; `error.details.request_id` identifies it in the log.",
    503: "The service is temporarily unavailable; the same request may succeed shortly.",
}
_SECURITY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "crw_…",
    "description": "An API key; or, depending on the installation, a Kubernetes token for its audience, "
    "or the OIDC token of a GitHub workflow that a project allows.",
}
_WRITE_METHODS = ("POST", "PUT", "PATCH", "DELETE")


def document(operations: Iterable[Operation], public_url: str) -> dict[str, Any]:
    """Return the document as JSON. Raises ValueError if two operations or two schemas share a name."""
    components, paths, operation_ids = Components(), dict[str, dict[str, Any]](), set[str]()
    for operation in operations:
        path = _PLACEHOLDER.sub(r"{\1}", operation.path)
        placeholders = [*_path_parameters(operation.path, components)]
        item = paths.setdefault(path, {"parameters": placeholders} if placeholders else {})
        operation_object = _operation(operation, components)
        if operation_object["operationId"] in operation_ids:
            raise ValueError(f"two operations are called {operation_object['operationId']}")
        operation_ids.add(operation_object["operationId"])
        item[operation.method.lower()] = operation_object
        if operation.method == "GET" and operation.head:
            item["head"] = _without_bodies(operation_object)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Crewyard", "version": "v1", "description": _API_DESCRIPTION},
        "servers": [{"url": public_url}],
        "security": [{"key": []}],
        "tags": [{"name": tag} for tag in (*dict.fromkeys(_TAGS.values()), "Service")],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {**_SECURITY_SCHEME}},
            "headers": headers.components(),
            "responses": dict(sorted(components.responses.items())),
            "schemas": dict(sorted(components.schemas.items())),
        },
    }


def _operation(operation: Operation, components: Components) -> dict[str, Any]:
    rate_limited = operation.path.startswith("/v1/")
    parameters = [_parameter(parameter, "query", components) for parameter in operation.query]
    parameters += [_parameter(parameter, "header", components) for parameter in operation.headers]
    result: dict[str, Any] = {
        "operationId": operation_id(operation.summary),
        "summary": operation.summary,
        "description": operation.description,
        "tags": [_tag(operation.path)],
        "security": [{"key": [operation.scope]}] if operation.scope else [],
    }
    if parameters:
        result["parameters"] = parameters
    if operation.body is not None:
        content: dict[str, Any] = {"schema": components.refer(operation.body)}
        if operation.example is not None:
            content["example"] = operation.example
        result["requestBody"] = {"required": True, "content": {operation.consumes: content}}
    responses = {
        str(response.status): _response(response, rate_limited, components)
        for response in operation.responses
    }
    for status in error_statuses(operation):
        name = f"Error{status}" if rate_limited else f"Error{status}Unlimited"
        components.responses.setdefault(name, _error_response(status, rate_limited, components))
        responses[str(status)] = {"$ref": f"#/components/responses/{name}"}
    result["responses"] = dict(sorted(responses.items()))
    return result


def error_statuses(operation: Operation) -> list[int]:
    """Return the error statuses of an operation."""
    statuses = {500, *operation.error_statuses}
    if operation.path.startswith("/v1/"):
        statuses |= {400, 429, 503}
    if operation.scope is not None:
        statuses |= {401, 403}
        statuses |= {406} if "*/*" not in operation.produces else set()
        statuses |= {408, 413, 415} if operation.method in _WRITE_METHODS else set()
    if "{" in operation.path:
        statuses.add(404)
    return sorted(statuses)


def operation_id(summary: str) -> str:
    """Convert `Start a run` to `start_run`."""
    words = re.findall(r"[a-z0-9]+", summary.lower())
    return "_".join(word for word in words if word not in ("a", "an", "the", "of", "its"))


def _tag(path: str) -> str:
    parts = [part for part in path.split("/") if part in _TAGS]
    # A resource below a project has its own section; one below a run does not.
    return _TAGS[parts[-1] if parts[0] == "projects" else parts[0]] if parts else "Service"


def _path_parameters(path: str, components: Components) -> Iterable[dict[str, Any]]:
    parts = path.split("/")
    for name in _PLACEHOLDER.findall(path):
        collection = next(parts[index - 1] for index, part in enumerate(parts) if part.startswith("{" + name))
        key = collection if name == "id" else name
        schema = path_parameters.SCHEMAS[key]
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": str(schema.get("description") or ""),
            "schema": components.refer(schema),
            "example": path_parameters.EXAMPLES[key],
        }


def _parameter(parameter: Parameter, location: str, components: Components) -> dict[str, Any]:
    schema = dict(parameter.schema)
    if parameter.default is not None:
        schema["default"] = parameter.default
    result = {
        "name": parameter.name,
        "in": location,
        "required": parameter.required,
        "description": parameter.description or str(schema.get("description") or ""),
        "schema": components.refer(schema),
    }
    return result if parameter.example is None else {**result, "example": parameter.example}


def _response(spec: ResponseSpec, rate_limited: bool, components: Components) -> dict[str, Any]:
    names = (*(headers.LIMITED if rate_limited else headers.ALWAYS), *spec.headers)
    result: dict[str, Any] = {
        "description": spec.description,
        "headers": headers.for_response(names, spec.optional_headers),
    }
    for media_type, schema in spec.content.items():
        content: dict[str, Any] = {"schema": components.refer(schema)}
        if media_type in spec.examples:
            content["example"] = spec.examples[media_type]
        result.setdefault("content", {})[media_type] = content
    return result


def _error_response(status: int, rate_limited: bool, components: Components) -> dict[str, Any]:
    names = (*(headers.LIMITED if rate_limited else headers.ALWAYS), *headers.BY_ERROR_STATUS.get(status, ()))
    failure = {"code": errors.code_of(status), "message": _ERROR_DESCRIPTIONS[status], "details": {}}
    return {
        "description": _ERROR_DESCRIPTIONS[status],
        "headers": headers.for_response(names, ()),
        "content": {
            "application/json": {
                "schema": components.refer(_ERROR_SCHEMA),
                "example": {"error": failure},
            }
        },
    }


def _without_bodies(operation: Mapping[str, Any]) -> dict[str, Any]:
    responses = {
        status: {key: value for key, value in response.items() if key != "content"}
        for status, response in operation["responses"].items()
    }
    return {
        **{key: value for key, value in operation.items() if key != "requestBody"},
        "operationId": operation["operationId"] + "_head",
        "summary": operation["summary"] + " (headers only)",
        "responses": responses,
    }
