"""Every API operation as a section, from the OpenAPI document. Pure. Called by `dev.site.sections`."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dev.site.text import cell, code, table

_ADDRESS = "$CREWYARD_URL"
_KEY = '-H "Authorization: Bearer $CREWYARD_API_KEY"'


def render(document: Mapping[str, Any]) -> str:
    """Return one heading per tag with one subheading per operation; HEAD is listed with its GET."""
    parts = []
    for tag in document["tags"]:
        calls = [
            _call(method, path, item, document)
            for path, item in document["paths"].items()
            for method in item
            if method not in ("parameters", "head") and item[method]["tags"] == [tag["name"]]
        ]
        parts += [f"## {tag['name']}\n", *calls]
    return "\n".join(parts)


def schemas(document: Mapping[str, Any]) -> str:
    """Return every object of requests and responses as a table of its fields."""
    parts, request_objects = [], set(_request_objects(document))
    for name, schema in document["components"]["schemas"].items():
        if "properties" not in schema:
            continue
        always = "Required." if name in request_objects else "Always present."
        rows = [
            (
                code(field),
                _type(child, document),
                _description(child, document, field in schema.get("required", ()), always),
            )
            for field, child in schema["properties"].items()
        ]
        about = [cell(schema["description"]) + "\n"] if schema.get("description") else []
        parts += [f"### {name}\n", *about, table(("field", "type", "meaning"), rows)]
    return "\n".join(parts)


def type_of(schema: Mapping[str, Any]) -> str:
    """Return a schema's type in short; a referenced object by name."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(type_of(option) for option in schema[union]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if schema.get("format") == "date-time":
        return "time"
    return str(kind)


def undescribed(document: Mapping[str, Any]) -> list[str]:
    """Return the fields without a description of their own or of the referenced object."""
    return [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, child in schema.get("properties", {}).items()
        if not _description(child, document, False, "") and "properties" not in _resolved(child, document)
    ]


def _request_objects(document: Mapping[str, Any]) -> Iterable[str]:
    """Yield the names of the objects in request bodies."""
    for item in document["paths"].values():
        for method, operation in item.items():
            if method != "parameters":
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    yield type_of(content["schema"])


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the target of a reference, or the schema itself."""
    return document["components"]["schemas"][type_of(schema)] if "$ref" in schema else schema


def _type(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return a type as Markdown; an object with a table links to it."""
    resolved = _resolved(schema, document)
    if resolved is not schema and "properties" not in resolved:
        return cell(type_of(resolved))
    items = schema.get("items", {})
    if "$ref" in items:
        return f"list of {_type(items, document)}"
    name = cell(type_of(schema))
    return f"[{name}](#{name.lower()})" if resolved is not schema else name


def _description(schema: Mapping[str, Any], document: Mapping[str, Any], needed: bool, always: str) -> str:
    description = schema.get("description") or _resolved(schema, document).get("description") or ""
    return " ".join(filter(None, [cell(description), always if needed else ""]))


def _call(method: str, path: str, item: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    operation = item[method]
    scopes = [scope for requirement in operation["security"] for scope in requirement["key"]]
    parts = [
        f"### {operation['summary']}\n",
        f"`{method.upper()} {path}`" + (", and `HEAD`" if method == "get" and "head" in item else "") + "\n",
        f"{cell(operation['description'])} Scope: " + (f"`{scopes[0]}`." if scopes else "none.") + "\n",
    ]
    parameters = [*item.get("parameters", ()), *operation.get("parameters", ())]
    if parameters:
        rows = [_parameter(parameter, document) for parameter in parameters]
        parts.append(table(("parameter", "in", "type", "meaning"), rows))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body: {code(kind)}, {_type(content['schema'], document)}.\n")
    parts.append("```sh\n" + _example(method, path, item, operation) + "\n```\n")
    parts.append(table(("response", "body", ""), _responses(operation, document)))
    for status, response in operation["responses"].items():
        example = response.get("content", {}).get("application/json", {}).get("example")
        if status.startswith("2") and example is not None:
            body = json.dumps(example, indent=2, ensure_ascii=False)
            parts.append(
                f'??? example "{status}"\n\n    ```json\n    ' + body.replace("\n", "\n    ") + "\n    ```\n"
            )
    return "\n".join(parts)


def _parameter(parameter: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[str, str, str, str]:
    schema = parameter["schema"]
    meaning = [cell(parameter.get("description", ""))]
    if "default" in schema:
        meaning.append(f"Default {code(schema['default'])}.")
    if parameter.get("required") and parameter["in"] != "path":
        meaning.append("Required.")
    return code(parameter["name"]), parameter["in"], _type(schema, document), " ".join(filter(None, meaning))


def _responses(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    error_statuses = []
    for status, response in operation["responses"].items():
        if "$ref" in response:
            error_statuses.append(status)
            continue
        bodies = [
            f"{code(kind)} {_body(content['schema'], document)}".strip()
            for kind, content in _content(response)
        ]
        yield status, "<br>".join(bodies), cell(response["description"])
    if error_statuses:
        yield (
            ", ".join(error_statuses),
            "`application/json` Error",
            "[What each means](troubleshooting.md#errors-of-the-api)",
        )


def _content(response: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    content: Mapping[str, Mapping[str, Any]] = response.get("content", {})
    return content.items()


def _body(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    data = schema.get("properties", {}).get("data")
    if data is None and schema.get("type") in ("object", "string"):
        return ""
    return _type(data or schema, document)


def _example(method: str, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    for parameter in item.get("parameters", ()):
        path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
    required = [
        parameter
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and parameter.get("required")
    ]
    path += "?" + "&".join(f"{parameter['name']}=…" for parameter in required) if required else ""
    lines = ["curl" + ("" if method == "get" else f" -X {method.upper()}") + f' "{_ADDRESS}{path}"']
    lines += [_KEY] if operation["security"] else []
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f'-H "Content-Type: {kind}"')
        if "example" in content:
            lines.append("-d '" + json.dumps(content["example"], ensure_ascii=False) + "'")
        else:
            lines.append("--data-binary @context.tar.gz")
    return " \\\n  ".join(lines)
