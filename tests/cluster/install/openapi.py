"""JSON schemas for kubeconform from the apiserver's OpenAPI document: it cannot download any here.

Strict: an object with declared properties has no others.
"""

import json
from pathlib import Path
from typing import Any

KINDS = "x-kubernetes-group-version-kind"
# These accept a string or a number, unlike the document says.
EITHER = ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "io.k8s.apimachinery.pkg.api.resource.Quantity")


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


def write(document: dict[str, Any], directory: Path) -> str:
    """Write one file per kind of the OpenAPI document (v2); return kubeconform's -schema-location."""
    definitions = {name: _strict(schema) for name, schema in document["definitions"].items()}
    for name in EITHER:
        definitions[name] = {"type": ["string", "number"]}
    (directory / "definitions.json").write_text(json.dumps({"definitions": definitions}))
    for name, schema in document["definitions"].items():
        for kind in schema.get(KINDS, []):
            version = "-".join(part for part in (kind["group"].partition(".")[0], kind["version"]) if part)
            file = directory / f"{kind['kind']}-{version}.json".lower()
            file.write_text(json.dumps({"$ref": f"definitions.json#/definitions/{name}"}))
    return str(directory / "{{ .ResourceKind }}{{ .KindSuffix }}.json")
