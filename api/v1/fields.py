"""JSON Schemas (Draft 2020-12) of fields that several resources have, and example values. Pure.

Called by the `schema` modules of the resources. Every schema with a title becomes a component of the
OpenAPI document. Object schemas are closed: a response with any other key fails the tests.
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
NO_NUL_PATTERN = "^[^\\u0000]*$"

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TIMESTAMP: Schema = {"type": "string", "format": "date-time"}
URL: Schema = {"type": "string", "format": "uri"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
SSE: Schema = {"description": "Server-sent events: `id`, `event`, and `data` as one line of JSON."}
PROJECT_NAME: Schema = {
    "title": "ProjectName",
    "type": "string",
    "minLength": 1,
    "maxLength": 52,
    "pattern": NAME_PATTERN,
    "description": "A project's name: lower-case letters, digits and hyphens, for example research-crew.",
}
DEPLOYMENT_ID: Schema = {
    "title": "DeploymentId",
    "type": "string",
    "pattern": "^dep_[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": 52,
    "description": "A deployment's id, for example dep_ab12.",
}
DOCS_URL: Schema = {
    **URL,
    "description": "The documentation of the reason; only if the installation sets it, and not in lists.",
}

EXAMPLE_TIMESTAMP = "2026-11-21T10:00:00.000000Z"
EXAMPLE_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
EXAMPLE_PROJECT_NAME = "research"
EXAMPLE_DEPLOYMENT_ID = "dep_ab12"
EXAMPLE_RUN_ID = "run_ab12"
EXAMPLE_URL = "https://crewyard.example.com/v1"
"""All examples describe one consistent installation; the tests run every example."""


def request_object(required: list[str], properties: Mapping[str, Any], **more: Any) -> Schema:
    """Return a closed object schema of a request."""
    return {
        "type": "object",
        "required": required,
        "properties": dict(properties),
        "additionalProperties": False,
        **more,
    }


def response_object(title: str, properties: Mapping[str, Any], optional: tuple[str, ...] = ()) -> Schema:
    """Return a closed object schema of a response; all properties but the `optional` ones are required."""
    return {
        "title": title,
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": dict(properties),
        "additionalProperties": False,
    }


def described(schema: Schema, description: str) -> Schema:
    """Return a schema with this description."""
    return {**schema, "description": description}


def nullable(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    if "title" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


ID: Schema = described(TEXT, "Its id.")
CREATED_AT: Schema = described(TIMESTAMP, "When it was created.")
EXAMPLE_PRINCIPAL = "key:Xa81kd02Pq"
CREATED_BY: Schema = described(
    nullable(TEXT),
    "Who created it through the API: `key:<id>`, `kubernetes:<user>`, `user:<name>`, `workflow:…`; null for "
    "kubectl, the controller and earlier versions.",
)
SIZE: Schema = described(COUNT, "Its size in bytes.")
DIGEST: Schema = described(SHA256, "The SHA-256 of its bytes, in hexadecimal.")
EXPLANATION: Schema = described(TEXT, "A sentence for users, with the next step.")
WAITING: Schema = response_object(
    "Waiting",
    {
        "reason": described(TEXT, "A stable code for programs, such as Queued or Unschedulable."),
        "message": EXPLANATION,
        "since": described(nullable(TIMESTAMP), "When it began to wait for this; null while unknown."),
    },
)
"""Why a run or a deployment has not started, or does not go on."""
