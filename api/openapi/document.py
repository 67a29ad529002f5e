"""The OpenAPI 3.1 document, made of the operations and their schemas.

Pure. Called by `api.openapi.routes`, which serves it, and by tests, which hold
every answer against it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from api import errors
from api.http.operation import Answer, Operation
from api.http.query import Parameter
from api.openapi import examples, headers, shapes
from api.openapi.references import Components
from api.v1 import schemas

_PLACEHOLDER = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_IDS = {
    "runs": shapes.RUN_ID,
    "deployments": schemas.DEPLOYMENT_ID,
    "api-keys": shapes.KEY_ID,
}
_PARTS: dict[str, Mapping[str, Any]] = {
    "name": schemas.PROJECT_NAME,
    "variable": schemas.VARIABLE_NAME,
    "artifact": {"type": "string", "minLength": 1, "description": "A file's name; it may contain slashes."},
}
_TAGS = {
    "projects": "Projects",
    "env": "Environment variables",
    "usage": "Usage",
    "uploads": "Deployments",
    "deployments": "Deployments",
    "runs": "Runs",
    "api-keys": "API keys",
    "hooks": "Webhooks",
}
_ABOUT = (
    "Crews (multi-agent Python programs) as deployments and runs on Kubernetes. A single object comes as "
    "`{data}`, a list as `{data, pagination}`, an error as `{error: {code, message, details}}`. "
    "The scope an operation asks of a key stands in its security requirement; `admin` includes all, and "
    "every key may read. A caller may hold other scopes in one project than in another."
)
_REFUSED = {
    400: "The request is wrong; `error.details.field` names the parameter or field.",
    401: "No valid key was shown.",
    403: "The key lacks the scope, or is not for the project that the request names.",
    404: "There is no such thing, or the key may not see it.",
    405: "The method is not possible here.",
    406: "The answer does not come in a media type that Accept names.",
    408: "The body did not arrive in time.",
    409: "The request is right, but not in this state.",
    413: "The body is too large.",
    415: "The body is not declared as what is taken here.",
    416: "The range lies beyond the file.",
    429: "Too many requests in this minute, too many streams, or a queue or the room for uploads is full.",
    500: "The service failed; `error.details.request_id` finds it in its log.",
    503: "A part of the service is away; the same request may succeed shortly.",
}
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "crw_…",
    "description": "An API key; or, as the installation is set up, a token of the cluster for its audience, "
    "or the identity of a GitHub workflow that a project lets in.",
}
_WRITES = ("POST", "PUT", "PATCH", "DELETE")


def document(operations: Iterable[Operation], public_url: str) -> dict[str, Any]:
    """The document as JSON. Raises ValueError where two operations or two schemas have one name."""
    components, paths, known = Components(), dict[str, dict[str, Any]](), set[str]()
    for operation in operations:
        path = _PLACEHOLDER.sub(r"{\1}", operation.path)
        placeholders = [*_path_parameters(operation.path, components)]
        found = paths.setdefault(path, {"parameters": placeholders} if placeholders else {})
        described = _operation(operation, components)
        if described["operationId"] in known:
            raise ValueError(f"two operations are called {described['operationId']}")
        known.add(described["operationId"])
        found[operation.method.lower()] = described
        if operation.method == "GET" and operation.head:
            found["head"] = _without_bodies(described)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Crewyard", "version": "v1", "description": _ABOUT},
        "servers": [{"url": public_url}],
        "security": [{"key": []}],
        "tags": [{"name": tag} for tag in (*dict.fromkeys(_TAGS.values()), "Service")],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {**_KEY}},
            "headers": headers.components(),
            "responses": dict(sorted(components.responses.items())),
            "schemas": dict(sorted(components.schemas.items())),
        },
    }


def _operation(operation: Operation, components: Components) -> dict[str, Any]:
    limited = operation.path.startswith("/v1/")
    parameters = [_parameter(parameter, "query", components) for parameter in operation.query]
    parameters += [_parameter(parameter, "header", components) for parameter in operation.headers]
    found: dict[str, Any] = {
        "operationId": operation_id(operation.summary),
        "summary": operation.summary,
        "description": operation.description,
        "tags": [_tag(operation.path)],
        "security": [{"key": [operation.scope]}] if operation.scope else [],
    }
    if parameters:
        found["parameters"] = parameters
    if operation.body is not None:
        content: dict[str, Any] = {"schema": components.refer(operation.body)}
        if operation.example is not None:
            content["example"] = operation.example
        found["requestBody"] = {"required": True, "content": {operation.takes: content}}
    responses = {str(answer.status): _answer(answer, limited, components) for answer in operation.answers}
    for status in refusals(operation):
        name = f"Error{status}" if limited else f"Error{status}Unlimited"
        components.responses.setdefault(name, _refusal(status, limited, components))
        responses[str(status)] = {"$ref": f"#/components/responses/{name}"}
    found["responses"] = dict(sorted(responses.items()))
    return found


def refusals(operation: Operation) -> list[int]:
    """The statuses of errors that an operation can answer with."""
    found = {500, *operation.refusals}
    if operation.path.startswith("/v1/"):
        found |= {400, 429, 503}
    if operation.scope is not None:
        found |= {401, 403}
        found |= {406} if "*/*" not in operation.produces else set()
        found |= {408, 413, 415} if operation.method in _WRITES else set()
    if "{" in operation.path:
        found.add(404)
    return sorted(found)


def operation_id(summary: str) -> str:
    """`Start a run` → `start_run`."""
    words = re.findall(r"[a-z0-9]+", summary.lower())
    return "_".join(word for word in words if word not in ("a", "an", "the", "of", "its"))


def _tag(path: str) -> str:
    parts = [part for part in path.split("/") if part in _TAGS]
    # What stands below a project has a section of its own, what stands below a run has not.
    return _TAGS[parts[-1] if parts[0] == "projects" else parts[0]] if parts else "Service"


def _path_parameters(path: str, components: Components) -> Iterable[dict[str, Any]]:
    parts = path.split("/")
    for name in _PLACEHOLDER.findall(path):
        collection = next(parts[place - 1] for place, part in enumerate(parts) if part.startswith("{" + name))
        schema = _IDS.get(collection, shapes.TEXT) if name == "id" else _PARTS[name]
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": str(schema.get("description") or ""),
            "schema": components.refer(schema),
            "example": examples.PATH[collection if name == "id" else name],
        }


def _parameter(parameter: Parameter, place: str, components: Components) -> dict[str, Any]:
    schema = dict(parameter.schema)
    if parameter.default is not None:
        schema["default"] = parameter.default
    found = {
        "name": parameter.name,
        "in": place,
        "required": parameter.required,
        "description": parameter.description or str(schema.get("description") or ""),
        "schema": components.refer(schema),
    }
    return found if parameter.example is None else {**found, "example": parameter.example}


def _answer(answer: Answer, limited: bool, components: Components) -> dict[str, Any]:
    names = (*(headers.LIMITED if limited else headers.ALWAYS), *answer.headers)
    found: dict[str, Any] = {
        "description": answer.description,
        "headers": headers.of_answer(names, answer.optional),
    }
    for kind, schema in answer.content.items():
        content: dict[str, Any] = {"schema": components.refer(schema)}
        if kind in answer.examples:
            content["example"] = answer.examples[kind]
        found.setdefault("content", {})[kind] = content
    return found


def _refusal(status: int, limited: bool, components: Components) -> dict[str, Any]:
    names = (*(headers.LIMITED if limited else headers.ALWAYS), *headers.OF_ERROR.get(status, ()))
    failure = {"code": errors.code_of(status), "message": _REFUSED[status], "details": {}}
    return {
        "description": _REFUSED[status],
        "headers": headers.of_answer(names, ()),
        "content": {
            "application/json": {
                "schema": components.refer(shapes.ERROR),
                "example": {"error": failure},
            }
        },
    }


def _without_bodies(described: Mapping[str, Any]) -> dict[str, Any]:
    responses = {
        status: {key: value for key, value in response.items() if key != "content"}
        for status, response in described["responses"].items()
    }
    return {
        **{key: value for key, value in described.items() if key != "requestBody"},
        "operationId": described["operationId"] + "_head",
        "summary": described["summary"] + " (headers only)",
        "responses": responses,
    }
