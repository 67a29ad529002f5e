"""Reduces the OpenAPI document to the input of the client generators. Pure.

Called by `clients.generate` and tests. Omits HEAD, webhooks (which git hosts call), paths outside /v1,
headers, examples, and event streams (hand-written code reads these). All error responses have one schema and
become one response, which makes the generated code ten times shorter.
"""

from collections.abc import Mapping
from typing import Any

URL = "https://crewyard.example.com"
"""Placeholder for the URL of an installation."""
_STREAM = "text/event-stream"
_METHODS = ("get", "post", "put", "patch", "delete")
_NOT_CALLED = ("/v1/hooks/", "/v1/uploads/")
_NAMES = {
    "follow_or_list_events": "list_events",
    "read_or_follow_build_log": "read_build_log",
    "read_run_s_log": "read_run_log",
    "get_project_s_usage": "get_usage",
    "roll_back_to_deployment": "roll_back",
}
"""Operation ids to function names, where the id is a phrase."""
_FAILURE = {
    "description": "A failure.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def for_clients(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without operations that clients do not call, and without unused schemas."""
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        if path.startswith("/v1/") and not path.startswith(_NOT_CALLED):
            operations = {method: _operation(item[method]) for method in _METHODS if method in item}
            paths[path] = {**{key: item[key] for key in ("parameters",) if key in item}, **operations}
    reduced = {**document, "paths": paths, "servers": [{"url": URL}]}
    reduced.pop("tags", None)
    typed: dict[str, Any] = _typed({**reduced, "components": _used(reduced)})
    return typed


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    name = operation["operationId"]
    success = {
        code: _response(response) for code, response in operation["responses"].items() if code.startswith("2")
    }
    reduced = {
        **operation, "operationId": _NAMES.get(name, name), "responses": {**success, "default": _FAILURE},
    }  # fmt: skip
    parameters = [item for item in operation.get("parameters") or () if item.get("name") != "Last-Event-ID"]
    return (
        {**reduced, "parameters": parameters}
        if parameters
        else {k: v for k, v in reduced.items() if k != "parameters"}
    )


def _response(response: Mapping[str, Any]) -> dict[str, Any]:
    content = {
        media: {"schema": body["schema"]}
        for media, body in (response.get("content") or {}).items()
        if media != _STREAM
    }
    return {"description": response["description"], **({"content": content} if content else {})}


def _typed(node: Any) -> Any:
    """Return the document with a type next to each string constant, which the generators need."""
    if isinstance(node, list):
        return [_typed(value) for value in node]
    if not isinstance(node, Mapping):
        return node
    typed = {key: _typed(value) for key, value in node.items()}
    if isinstance(typed.get("const"), str) and "type" not in typed:
        typed["type"] = "string"
    return typed


def _used(document: Mapping[str, Any]) -> dict[str, Any]:
    parts: Mapping[str, Mapping[str, Any]] = document["components"]
    used, queue = set[str](), [document["paths"]]
    while queue:
        for reference in _references(queue.pop()):
            if reference not in used:
                used.add(reference)
                _, _, section, name = reference.split("/")
                queue.append(parts[section][name])
    components = {
        section: {name: item for name, item in entries.items() if f"#/components/{section}/{name}" in used}
        for section, entries in parts.items()
        if section != "securitySchemes"
    }
    return {**components, "securitySchemes": dict(parts["securitySchemes"])}


def for_go(document: Any) -> Any:
    """Return the document adapted to Go without loss.

    A union of integer and string, perhaps with null, gets no type, since oapi-codegen writes a page of code
    for it. Numbers become double, and a crew's output stays raw JSON, since untyped numbers become
    floating-point in Go.
    """
    if isinstance(document, list):
        return [for_go(value) for value in document]
    if not isinstance(document, Mapping):
        return document
    kinds = [option.get("type") for option in document.get("anyOf") or ()]
    if kinds in (["integer", "string"], ["integer", "string", "null"]):
        return {key: value for key, value in document.items() if key == "description"}
    adapted = {key: for_go(value) for key, value in document.items()}
    kind = adapted.get("type")
    if kind == "number" or (isinstance(kind, list) and "number" in kind):
        adapted.setdefault("format", "double")
    if None in (adapted.get("enum") or ()):
        # The type says that null is allowed; Go would get a constant "<nil>".
        adapted["enum"] = [value for value in adapted["enum"] if value is not None]
    output = (adapted.get("properties") or {}).get("output")
    if isinstance(output, dict) and not output.keys() & {"type", "$ref", "anyOf", "oneOf", "allOf"}:
        output["x-go-type"] = "json.RawMessage"
    return adapted


def _references(node: Any) -> set[str]:
    if isinstance(node, Mapping):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set[str]()
        return own.union(*(_references(value) for value in node.values()))
    if isinstance(node, list):
        return set[str]().union(*(_references(value) for value in node))
    return set()
