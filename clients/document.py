"""What of the API's description the clients are made of. Pure. Called by `clients.generate` and tests.

Left out: HEAD, which says what GET says; webhooks, which git hosts send; what is no part
of /v1; headers and examples; and event streams, which hand-written code reads. All
failures look alike and become one answer, so that what is made is a tenth as long.
"""

from collections.abc import Mapping
from typing import Any

URL = "https://crewyard.example.com"
"""Stands where an installation has its own address."""
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
"""Operations whose names are for people, as functions are called."""
_FAILURE = {
    "description": "A failure.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def for_clients(document: Mapping[str, Any]) -> dict[str, Any]:
    """The description without what a client does not call, and without schemas that nothing uses then."""
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        if path.startswith("/v1/") and not path.startswith(_NOT_CALLED):
            operations = {method: _operation(item[method]) for method in _METHODS if method in item}
            paths[path] = {**{key: item[key] for key in ("parameters",) if key in item}, **operations}
    kept = {**document, "paths": paths, "servers": [{"url": URL}]}
    kept.pop("tags", None)
    found: dict[str, Any] = _typed({**kept, "components": _used(kept)})
    return found


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    told = operation["operationId"]
    good = {code: _answer(answer) for code, answer in operation["responses"].items() if code.startswith("2")}
    found = {**operation, "operationId": _NAMES.get(told, told), "responses": {**good, "default": _FAILURE}}
    asked = [one for one in operation.get("parameters") or () if one.get("name") != "Last-Event-ID"]
    return {**found, "parameters": asked} if asked else {k: v for k, v in found.items() if k != "parameters"}


def _answer(told: Mapping[str, Any]) -> dict[str, Any]:
    content = {
        media: {"schema": body["schema"]}
        for media, body in (told.get("content") or {}).items()
        if media != _STREAM
    }
    return {"description": told["description"], **({"content": content} if content else {})}


def _typed(node: Any) -> Any:
    """The same with a type beside each constant text: generators take the type from there."""
    if isinstance(node, list):
        return [_typed(value) for value in node]
    if not isinstance(node, Mapping):
        return node
    found = {key: _typed(value) for key, value in node.items()}
    if isinstance(found.get("const"), str) and "type" not in found:
        found["type"] = "string"
    return found


def _used(document: Mapping[str, Any]) -> dict[str, Any]:
    parts: Mapping[str, Mapping[str, Any]] = document["components"]
    wanted, queue = set[str](), [document["paths"]]
    while queue:
        for reference in _references(queue.pop()):
            if reference not in wanted:
                wanted.add(reference)
                _, _, section, name = reference.split("/")
                queue.append(parts[section][name])
    found = {
        section: {name: one for name, one in entries.items() if f"#/components/{section}/{name}" in wanted}
        for section, entries in parts.items()
        if section != "securitySchemes"
    }
    return {**found, "securitySchemes": dict(parts["securitySchemes"])}


def for_go(document: Any) -> Any:
    """The same as Go holds it without loss.

    No type where a number or a text may stand: a union of two is a page of code in Go. Numbers as double; and
    a crew's output as the bytes it came as, since what has no type becomes floating-point numbers there.
    """
    if isinstance(document, list):
        return [for_go(value) for value in document]
    if not isinstance(document, Mapping):
        return document
    if [one.get("type") for one in document.get("anyOf") or ()] == ["integer", "string"]:
        return {key: value for key, value in document.items() if key == "description"}
    found = {key: for_go(value) for key, value in document.items()}
    kinds = found.get("type")
    if kinds == "number" or (isinstance(kinds, list) and "number" in kinds):
        found.setdefault("format", "double")
    output = (found.get("properties") or {}).get("output")
    if isinstance(output, dict) and not output.keys() & {"type", "$ref", "anyOf", "oneOf", "allOf"}:
        output["x-go-type"] = "json.RawMessage"
    return found


def _references(node: Any) -> set[str]:
    if isinstance(node, Mapping):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set[str]()
        return own.union(*(_references(value) for value in node.values()))
    if isinstance(node, list):
        return set[str]().union(*(_references(value) for value in node))
    return set()
