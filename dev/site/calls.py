"""Every call of the API as a section, made of its description. Pure. Called by `dev.site.sections`."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dev.site.text import cell, code, table

_ADDRESS = "$CREWYARD_URL"
_KEY = '-H "Authorization: Bearer $CREWYARD_API_KEY"'


def render(document: Mapping[str, Any]) -> str:
    """One heading for each group, below it one for each call; HEAD is named with its GET."""
    parts = []
    for tag in document["tags"]:
        found = [
            _call(method, path, item, document)
            for path, item in document["paths"].items()
            for method in item
            if method not in ("parameters", "head") and item[method]["tags"] == [tag["name"]]
        ]
        parts += [f"## {tag['name']}\n", *found]
    return "\n".join(parts)


def schemas(document: Mapping[str, Any]) -> str:
    """Every object that calls take or give, as a table of its fields."""
    parts, taken = [], set(_taken(document))
    for name, schema in document["components"]["schemas"].items():
        if "properties" not in schema:
            continue
        always = "Needed." if name in taken else "Always there."
        rows = [
            (
                code(field),
                _type(child, document),
                _said(child, document, field in schema.get("required", ()), always),
            )
            for field, child in schema["properties"].items()
        ]
        about = [cell(schema["description"]) + "\n"] if schema.get("description") else []
        parts += [f"### {name}\n", *about, table(("field", "type", "meaning"), rows)]
    return "\n".join(parts)


def type_of(schema: Mapping[str, Any]) -> str:
    """A schema's type in a few words; an object of its own by its name."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(type_of(one) for one in schema[several]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if schema.get("format") == "date-time":
        return "time"
    return str(kind)


def undescribed(document: Mapping[str, Any]) -> list[str]:
    """The fields of objects that say nothing of themselves, nor does what they refer to."""
    return [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, child in schema.get("properties", {}).items()
        if not _said(child, document, False, "") and "properties" not in _named(child, document)
    ]


def _taken(document: Mapping[str, Any]) -> Iterable[str]:
    """The names of the objects that calls take."""
    for item in document["paths"].values():
        for method, operation in item.items():
            if method != "parameters":
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    yield type_of(content["schema"])


def _named(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference leads to; anything else itself."""
    return document["components"]["schemas"][type_of(schema)] if "$ref" in schema else schema


def _type(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """A type as Markdown; an object that has a table of its own is a link to it."""
    found = _named(schema, document)
    if found is not schema and "properties" not in found:
        return cell(type_of(found))
    items = schema.get("items", {})
    if "$ref" in items:
        return f"list of {_type(items, document)}"
    name = cell(type_of(schema))
    return f"[{name}](#{name.lower()})" if found is not schema else name


def _said(schema: Mapping[str, Any], document: Mapping[str, Any], needed: bool, always: str) -> str:
    said = schema.get("description") or _named(schema, document).get("description") or ""
    return " ".join(filter(None, [cell(said), always if needed else ""]))


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
        rows = [_parameter(one, document) for one in parameters]
        parts.append(table(("parameter", "in", "type", "meaning"), rows))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body: {code(kind)}, {_type(content['schema'], document)}.\n")
    parts.append("```sh\n" + _example(method, path, item, operation) + "\n```\n")
    parts.append(table(("answer", "body", ""), _answers(operation, document)))
    for status, answer in operation["responses"].items():
        example = answer.get("content", {}).get("application/json", {}).get("example")
        if status.startswith("2") and example is not None:
            shown = json.dumps(example, indent=2, ensure_ascii=False)
            parts.append(
                f'??? example "{status}"\n\n    ```json\n    ' + shown.replace("\n", "\n    ") + "\n    ```\n"
            )
    return "\n".join(parts)


def _parameter(one: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[str, str, str, str]:
    schema = one["schema"]
    said = [cell(one.get("description", ""))]
    if "default" in schema:
        said.append(f"Default {code(schema['default'])}.")
    if one.get("required") and one["in"] != "path":
        said.append("Needed.")
    return code(one["name"]), one["in"], _type(schema, document), " ".join(filter(None, said))


def _answers(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    refused = []
    for status, answer in operation["responses"].items():
        if "$ref" in answer:
            refused.append(status)
            continue
        bodies = [
            f"{code(kind)} {_body(content['schema'], document)}".strip() for kind, content in _content(answer)
        ]
        yield status, "<br>".join(bodies), cell(answer["description"])
    if refused:
        yield (
            ", ".join(refused),
            "`application/json` Error",
            "[What each means](troubleshooting.md#errors-of-the-api)",
        )


def _content(answer: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    found: Mapping[str, Mapping[str, Any]] = answer.get("content", {})
    return found.items()


def _body(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    data = schema.get("properties", {}).get("data")
    if data is None and schema.get("type") in ("object", "string"):
        return ""
    return _type(data or schema, document)


def _example(method: str, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    for one in item.get("parameters", ()):
        path = path.replace("{" + one["name"] + "}", str(one["example"]))
    needed = [one for one in operation.get("parameters", ()) if one["in"] == "query" and one.get("required")]
    path += "?" + "&".join(f"{one['name']}=…" for one in needed) if needed else ""
    lines = ["curl" + ("" if method == "get" else f" -X {method.upper()}") + f' "{_ADDRESS}{path}"']
    lines += [_KEY] if operation["security"] else []
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f'-H "Content-Type: {kind}"')
        if "example" in content:
            lines.append("-d '" + json.dumps(content["example"], ensure_ascii=False) + "'")
        else:
            lines.append("--data-binary @context.tar.gz")
    return " \\\n  ".join(lines)
