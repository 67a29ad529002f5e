"""JSON Schemas of responses; `api.v1.schemas` has those of requests. Pure.

Called by the endpoint tables of `api.v1`. Every schema with a title becomes a component of the
document. Schemas are closed: a response with any other key fails the tests.
"""

from collections.abc import Mapping
from typing import Any

from api.auth.scopes import SCOPES
from api.http import casing
from api.v1 import field_descriptions
from api.v1.schemas import (
    DEPLOYMENT_ID,
    DEPLOYMENT_STATUSES,
    PROJECT_NAME,
    PROJECT_SPEC,
    RUN_STATUSES,
)
from crds import schema as crd
from crds.kinds import DEPLOYMENT as DEPLOYMENT_KIND

Schema = dict[str, Any]


def object_schema(title: str, properties: Mapping[str, Any], optional: tuple[str, ...] = ()) -> Schema:
    """Return a closed object schema; all properties but the `optional` ones are required."""
    return {
        "title": title,
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": {
            name: field_descriptions.with_description(title, name, schema)
            for name, schema in properties.items()
        },
        "additionalProperties": False,
    }


def nullable(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    if "title" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TIMESTAMP: Schema = {"type": "string", "format": "date-time"}
SSE: Schema = {"description": "Server-sent events: `id`, `event`, and `data` as one line of JSON."}
URL: Schema = {"type": "string", "format": "uri"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
RUN_ID: Schema = {
    "title": "RunId",
    "type": "string",
    "pattern": "^run_[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": 52,
    "description": "The id of a run, such as run_ab12.",
}

KEY_ID: Schema = {"type": "string", "pattern": "^[0-9A-Za-z]{10}$", "description": "The id of a key."}

_READY = {"status": {"type": ["boolean", "null"]}, "reason": TEXT, "message": TEXT}
_SPEC = {
    name: nullable(field) if name != "plan" else field
    for name, field in casing.request_schema(PROJECT_SPEC)["properties"].items()
}
PROJECT = object_schema(
    "Project",
    {
        "name": PROJECT_NAME,
        **_SPEC,
        "created_at": TIMESTAMP,
        "active_deployment_id": nullable(DEPLOYMENT_ID),
        "ready": object_schema("Ready", _READY),
    },
)
VARIABLE = object_schema("Variable", {"name": TEXT, "updated_at": TIMESTAMP})

_DEPLOYMENT: dict[str, Schema] = {
    "id": DEPLOYMENT_ID,
    "project": PROJECT_NAME,
    "status": {"type": "string", "enum": list(DEPLOYMENT_STATUSES)},
    "message": TEXT,
    "created_at": TIMESTAMP,
}
_BUILD_ERROR = casing.request_schema(
    crd.openapi(DEPLOYMENT_KIND)["properties"]["status"]["properties"]["error"]
)
_DOCS_URL = {
    "type": "string",
    "format": "uri",
    "description": "The documentation of the reason; only if the installation sets it, and not in lists.",
}
_BUILD_ERROR = {**_BUILD_ERROR, "properties": {**_BUILD_ERROR["properties"], "docs_url": _DOCS_URL}}
_ENDED = {"activated_at": nullable(TIMESTAMP), "error": {"title": "BuildError", **_BUILD_ERROR}}
DEPLOYMENT_CREATED = object_schema("DeploymentCreated", _DEPLOYMENT)
DEPLOYMENT_ITEM = object_schema("DeploymentItem", {**_DEPLOYMENT, **_ENDED}, ("error",))
DEPLOYMENT = object_schema(
    "Deployment",
    {
        **_DEPLOYMENT,
        **_ENDED,
        "git_sha": nullable(TEXT),
        "build_logs_url": URL,
        "queue_position": {
            "type": "integer",
            "minimum": 1,
            "description": "Its position in the build queue; only while it is queued.",
        },
    },
    ("queue_position", "error"),
)

_RUN = {
    "id": RUN_ID,
    "status": {"type": "string", "enum": list(RUN_STATUSES)},
    "created_at": TIMESTAMP,
    "deployment_id": nullable(DEPLOYMENT_ID),
    # Empty for a Run created with kubectl that names an unknown deployment.
    "project": TEXT,
}
_RUN_END = {"completed_at": nullable(TIMESTAMP), "duration_ms": nullable(COUNT)}
_RUN_REQUESTED = {"input": {"type": "object"}, "events_url": URL}
RUN_ITEM = object_schema("RunItem", {**_RUN, **_RUN_END})
RUN_CREATED = object_schema("RunCreated", {**_RUN, **_RUN_REQUESTED})
RUN = object_schema(
    "Run",
    {
        **_RUN,
        **_RUN_REQUESTED,
        **_RUN_END,
        "started_at": nullable(TIMESTAMP),
        "queue_position": {
            "type": "integer",
            "minimum": 1,
            "description": "How many slots must become free until it starts; only while it waits.",
        },
        "output": {"description": "The return value of the crew; only for a succeeded run."},
        "error": object_schema(
            "RunError",
            {"reason": nullable(TEXT), "message": nullable(TEXT), "docs_url": _DOCS_URL},
            ("docs_url",),
        ),
    },
    ("queue_position", "output", "error"),
)
EVENT = object_schema(
    "Event", {"id": {"type": "integer", "minimum": 1}, "type": TEXT, "data": {"type": "object"}}
)
ARTIFACT = object_schema(
    "Artifact",
    {
        "name": TEXT,
        "size": COUNT,
        "content_type": TEXT,
        "sha256": SHA256,
        "partial": {"type": "boolean", "description": "Whether the crew was stopped before it finished."},
        "created_at": TIMESTAMP,
        "url": URL,
    },
)
UPLOAD = object_schema(
    "Upload",
    {
        "id": TEXT,
        "upload_url": URL,
        "build_context_url": URL,
        "method": {"const": "PUT"},
        "headers": {"type": "object", "additionalProperties": TEXT},
        "expires_at": TIMESTAMP,
    },
)
UPLOAD_STORED = object_schema("UploadStored", {"id": TEXT, "size": COUNT, "sha256": SHA256})
_KEY: dict[str, Schema] = {
    "id": KEY_ID,
    "name": TEXT,
    "scopes": {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}},
    "projects": {"type": ["array", "null"], "items": PROJECT_NAME, "description": "Null for all."},
    "plan": nullable(TEXT),
    "created_at": TIMESTAMP,
    "expires_at": nullable(TIMESTAMP),
    "last_used_at": nullable(TIMESTAMP),
}
KEY = object_schema("Key", _KEY)
KEY_CREATED = object_schema(
    "KeyCreated", {**_KEY, "key": {"type": "string", "description": "The key itself, shown only once."}}
)
_AMOUNT: Schema = {"type": "number", "minimum": 0}
_MEASURES: dict[str, Schema] = {
    "runs": COUNT,
    "run_seconds": _AMOUNT,
    "build_seconds": _AMOUNT,
    "artifact_bytes": COUNT,
    "prompt_tokens": COUNT,
    "completion_tokens": COUNT,
    "cost": nullable(
        {**_AMOUNT, "description": "The cost by the prices of the installation; null without prices."}
    ),
}
_DATE: Schema = {"type": "string", "format": "date"}
USAGE = object_schema(
    "Usage",
    {
        "project": PROJECT_NAME,
        "from": _DATE,
        "to": _DATE,
        "currency": nullable(TEXT),
        "days": {"type": "array", "items": object_schema("UsageDay", {"date": _DATE, **_MEASURES})},
        "total": object_schema("UsageTotal", _MEASURES),
    },
)
HOOK = object_schema(
    "Delivery",
    {
        "effect": {
            "type": "string",
            "enum": ["look", "close", "none"],
            "description": "`look`: poll the repository now; `close`: remove previews; `none`: no effect.",
        },
        "reason": {"type": "string", "description": "A sentence for users."},
    },
)
ERROR = object_schema(
    "Error",
    {
        "error": object_schema(
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
