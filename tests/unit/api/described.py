"""Checks responses against the OpenAPI document: status, headers and body."""

import json
import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from api.openapi.document import document
from api.openapi.routes import OPERATIONS


class OpenApiDescription:
    """The document with compiled validators."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self.whole = json.loads(json.dumps(whole))
        # The most literal path first: /v1/uploads/{id}/content before a template that also matches it.
        templates = sorted(self.whole["paths"], key=lambda path: (path.count("{"), -len(path)))
        self._paths = [(self._pattern(path), path) for path in templates]
        self._validators: dict[str, Draft202012Validator] = {}

    @staticmethod
    def _pattern(path: str) -> re.Pattern[str]:
        parts = (".+" if part == "{artifact}" else "[^/]+" if part.startswith("{") else re.escape(part)
                 for part in path.split("/"))  # fmt: skip
        return re.compile("/".join(parts))

    def operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return method, path and operation object of all operations."""
        return [
            (method.upper(), path, found)
            for path, item in self.whole["paths"].items()
            for method, found in item.items()
            if method != "parameters"
        ]

    def operation(self, method: str, raw_path: str) -> dict[str, Any] | None:
        """Return the operation object that matches a request, or None."""
        path = next((path for pattern, path in self._paths if pattern.fullmatch(raw_path)), None)
        found: dict[str, Any] = self.whole["paths"][path] if path else {}
        return found.get(method.lower())

    def check(
        self, method: str, raw_path: str, status: int, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        """Fail for a response that is not described. `body` None: unchecked."""
        where = f"{method} {raw_path} {status}"
        operation = self.operation(method, raw_path)
        if operation is None:
            assert status >= 400, f"{where}: answered, but not described"
            self.check_schema(
                {"$ref": "#/components/schemas/Error"}, json.loads(body or b"{}"), where, method
            )
            return
        assert str(status) in operation["responses"], f"{where}: not among {list(operation['responses'])}"
        answer = self.resolve(operation["responses"][str(status)])
        self._check_headers(answer, headers, where)
        if body is None or method == "HEAD":
            assert not body, f"{where}: a body"
            return
        content = answer.get("content", {})
        if not content:
            assert body == b"", f"{where}: a body"
            return
        kind = headers["Content-Type"].partition(";")[0].strip()
        described = content.get(kind) or content.get("*/*")
        assert described is not None, f"{where}: {kind} is not among {list(content)}"
        value = (
            json.loads(body)
            if kind == "application/json" and "*/*" not in content
            else body.decode(errors="replace")
        )
        self.check_schema(described.get("schema", {}), value, where, method)

    def _check_headers(self, answer: Mapping[str, Any], headers: Mapping[str, str], where: str) -> None:
        for name, reference in answer.get("headers", {}).items():
            header = self.resolve(reference)
            if name not in headers:
                assert not header["required"], f"{where}: the header {name} is missing"
                continue
            text = headers[name]
            value = int(text) if header["schema"].get("type") == "integer" else text
            self.check_schema(header["schema"], value, f"{where} {name}")

    def resolve(self, thing: Any) -> Any:
        """Resolve a reference."""
        while "$ref" in thing:
            thing = self.whole["components"][thing["$ref"].split("/")[2]][thing["$ref"].split("/")[3]]
        return thing

    def check_schema(self, schema: Any, value: Any, where: str, method: str = "GET") -> None:
        """Fail if the value does not match the schema."""
        if method == "HEAD":
            return
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            whole = {**schema, "components": self.whole["components"]}
            self._validators[key] = Draft202012Validator(whole, format_checker=FormatChecker())
        error = next(self._validators[key].iter_errors(value), None)
        assert error is None, f"{where}: {error.json_path}: {error.message}"


DESCRIPTION = OpenApiDescription(document(OPERATIONS, "http://crewyard.example"))
