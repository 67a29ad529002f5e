"""Holds answers against the document: status, headers and body must be as it says."""

import json
import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from api.openapi.document import document
from api.openapi.routes import OPERATIONS


class Description:
    """The document, ready to check with."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self.whole = json.loads(json.dumps(whole))
        # The most literal path first: /v1/uploads/{id}/content before what it might be a part of.
        templates = sorted(self.whole["paths"], key=lambda path: (path.count("{"), -len(path)))
        self._paths = [(self._pattern(path), path) for path in templates]
        self._validators: dict[str, Draft202012Validator] = {}

    @staticmethod
    def _pattern(path: str) -> re.Pattern[str]:
        parts = (".+" if part == "{artifact}" else "[^/]+" if part.startswith("{") else re.escape(part)
                 for part in path.split("/"))  # fmt: skip
        return re.compile("/".join(parts))

    def operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Method, path and description of all."""
        return [
            (method.upper(), path, found)
            for path, item in self.whole["paths"].items()
            for method, found in item.items()
            if method != "parameters"
        ]

    def operation(self, method: str, raw_path: str) -> dict[str, Any] | None:
        """What is said of the operation that a request meets; None where there is none."""
        path = next((path for pattern, path in self._paths if pattern.fullmatch(raw_path)), None)
        found: dict[str, Any] = self.whole["paths"][path] if path else {}
        return found.get(method.lower())

    def check(
        self, method: str, raw_path: str, status: int, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        """Fails where the answer is not one of those that are described. Body None: it is not checked."""
        where = f"{method} {raw_path} {status}"
        operation = self.operation(method, raw_path)
        if operation is None:
            assert status >= 400, f"{where}: answered, but not described"
            self.fits({"$ref": "#/components/schemas/Error"}, json.loads(body or b"{}"), where, method)
            return
        assert str(status) in operation["responses"], f"{where}: not among {list(operation['responses'])}"
        answer = self.found(operation["responses"][str(status)])
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
        self.fits(described.get("schema", {}), value, where, method)

    def _check_headers(self, answer: Mapping[str, Any], headers: Mapping[str, str], where: str) -> None:
        for name, reference in answer.get("headers", {}).items():
            header = self.found(reference)
            if name not in headers:
                assert not header["required"], f"{where}: the header {name} is missing"
                continue
            text = headers[name]
            value = int(text) if header["schema"].get("type") == "integer" else text
            self.fits(header["schema"], value, f"{where} {name}")

    def found(self, thing: Any) -> Any:
        """What a reference refers to."""
        while "$ref" in thing:
            thing = self.whole["components"][thing["$ref"].split("/")[2]][thing["$ref"].split("/")[3]]
        return thing

    def fits(self, schema: Any, value: Any, where: str, method: str = "GET") -> None:
        """Fails where the value does not fit the schema."""
        if method == "HEAD":
            return
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            whole = {**schema, "components": self.whole["components"]}
            self._validators[key] = Draft202012Validator(whole, format_checker=FormatChecker())
        error = next(self._validators[key].iter_errors(value), None)
        assert error is None, f"{where}: {error.json_path}: {error.message}"


DESCRIPTION = Description(document(OPERATIONS, "http://crewyard.example"))
