"""What the API answers, as JSON Schemas: the other half of `api.v1.schemas`. Pure.

Called by the tables of `api.v1`. Every schema with a title becomes a component
of the document. Keys are exact: an answer with any other is a failed test.
"""

from collections.abc import Mapping
from typing import Any

from api.auth.scopes import SCOPES
from api.http import casing
from api.openapi import words
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


def shape(title: str, properties: Mapping[str, Any], optional: tuple[str, ...] = ()) -> Schema:
    """An object of exactly these properties; all are there but the optional ones."""
    return {
        "title": title,
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": {name: words.described(title, name, schema) for name, schema in properties.items()},
        "additionalProperties": False,
    }


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if "title" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MOMENT: Schema = {"type": "string", "format": "date-time"}
SSE: Schema = {"description": "Server-sent events: `id`, `event`, and `data` as one line of JSON."}
ADDRESS: Schema = {"type": "string", "format": "uri"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
RUN_ID: Schema = {
    "title": "RunId",
    "type": "string",
    "pattern": "^run_[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": 52,
    "description": "A run's id, such as run_ab12.",
}

KEY_ID: Schema = {"type": "string", "pattern": "^[0-9A-Za-z]{10}$", "description": "A key's id."}

_READY = {"status": {"type": ["boolean", "null"]}, "reason": TEXT, "message": TEXT}
_SPEC = {
    name: nullable(field) if name != "plan" else field
    for name, field in casing.request_schema(PROJECT_SPEC)["properties"].items()
}
PROJECT = shape(
    "Project",
    {
        "name": PROJECT_NAME,
        **_SPEC,
        "created_at": MOMENT,
        "active_deployment_id": nullable(DEPLOYMENT_ID),
        "ready": shape("Ready", _READY),
    },
)
VARIABLE = shape("Variable", {"name": TEXT, "updated_at": MOMENT})

_DEPLOYMENT: dict[str, Schema] = {
    "id": DEPLOYMENT_ID,
    "project": PROJECT_NAME,
    "status": {"type": "string", "enum": list(DEPLOYMENT_STATUSES)},
    "message": TEXT,
    "created_at": MOMENT,
}
_BUILD_ERROR = casing.request_schema(
    crd.openapi(DEPLOYMENT_KIND)["properties"]["status"]["properties"]["error"]
)
_DOCS_URL = {
    "type": "string",
    "format": "uri",
    "description": "Where the reason is explained; only where the installation says so, and not in lists.",
}
_BUILD_ERROR = {**_BUILD_ERROR, "properties": {**_BUILD_ERROR["properties"], "docs_url": _DOCS_URL}}
_ENDED = {"activated_at": nullable(MOMENT), "error": {"title": "BuildError", **_BUILD_ERROR}}
DEPLOYMENT_CREATED = shape("DeploymentCreated", _DEPLOYMENT)
DEPLOYMENT_ITEM = shape("DeploymentItem", {**_DEPLOYMENT, **_ENDED}, ("error",))
DEPLOYMENT = shape(
    "Deployment",
    {
        **_DEPLOYMENT,
        **_ENDED,
        "git_sha": nullable(TEXT),
        "build_logs_url": ADDRESS,
        "queue_position": {
            "type": "integer",
            "minimum": 1,
            "description": "Its place in the queue of builds; only while it waits there.",
        },
    },
    ("queue_position", "error"),
)

_RUN = {
    "id": RUN_ID,
    "status": {"type": "string", "enum": list(RUN_STATUSES)},
    "created_at": MOMENT,
    "deployment_id": nullable(DEPLOYMENT_ID),
    # Empty for a Run that names, through kubectl, a deployment nobody knows.
    "project": TEXT,
}
_RUN_END = {"completed_at": nullable(MOMENT), "duration_ms": nullable(COUNT)}
_RUN_GIVEN = {"input": {"type": "object"}, "events_url": ADDRESS}
RUN_ITEM = shape("RunItem", {**_RUN, **_RUN_END})
RUN_CREATED = shape("RunCreated", {**_RUN, **_RUN_GIVEN})
RUN = shape(
    "Run",
    {
        **_RUN,
        **_RUN_GIVEN,
        **_RUN_END,
        "started_at": nullable(MOMENT),
        "queue_position": {
            "type": "integer",
            "minimum": 1,
            "description": "How many places must become free until it gets one; only while it waits.",
        },
        "output": {"description": "What the crew returned; only of a run that succeeded."},
        "error": shape(
            "RunError",
            {"reason": nullable(TEXT), "message": nullable(TEXT), "docs_url": _DOCS_URL},
            ("docs_url",),
        ),
    },
    ("queue_position", "output", "error"),
)
EVENT = shape("Event", {"id": {"type": "integer", "minimum": 1}, "type": TEXT, "data": {"type": "object"}})
ARTIFACT = shape(
    "Artifact",
    {
        "name": TEXT,
        "size": COUNT,
        "content_type": TEXT,
        "sha256": SHA256,
        "partial": {"type": "boolean", "description": "Whether the crew was stopped before its end."},
        "created_at": MOMENT,
        "url": ADDRESS,
    },
)
UPLOAD = shape(
    "Upload",
    {
        "id": TEXT,
        "upload_url": ADDRESS,
        "build_context_url": ADDRESS,
        "method": {"const": "PUT"},
        "headers": {"type": "object", "additionalProperties": TEXT},
        "expires_at": MOMENT,
    },
)
UPLOAD_STORED = shape("UploadStored", {"id": TEXT, "size": COUNT, "sha256": SHA256})
_KEY: dict[str, Schema] = {
    "id": KEY_ID,
    "name": TEXT,
    "scopes": {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}},
    "projects": {"type": ["array", "null"], "items": PROJECT_NAME, "description": "Null for all."},
    "plan": nullable(TEXT),
    "created_at": MOMENT,
    "expires_at": nullable(MOMENT),
    "last_used_at": nullable(MOMENT),
}
KEY = shape("Key", _KEY)
KEY_CREATED = shape(
    "KeyCreated", {**_KEY, "key": {"type": "string", "description": "The key itself, shown this once."}}
)
_AMOUNT: Schema = {"type": "number", "minimum": 0}
_MEASURES: dict[str, Schema] = {
    "runs": COUNT,
    "run_seconds": _AMOUNT,
    "build_seconds": _AMOUNT,
    "artifact_bytes": COUNT,
    "prompt_tokens": COUNT,
    "completion_tokens": COUNT,
    "cost": nullable({**_AMOUNT, "description": "By the installation's prices; null without them."}),
}
_DATE: Schema = {"type": "string", "format": "date"}
USAGE = shape(
    "Usage",
    {
        "project": PROJECT_NAME,
        "from": _DATE,
        "to": _DATE,
        "currency": nullable(TEXT),
        "days": {"type": "array", "items": shape("UsageDay", {"date": _DATE, **_MEASURES})},
        "total": shape("UsageTotal", _MEASURES),
    },
)
HOOK = shape(
    "Delivery",
    {
        "effect": {
            "type": "string",
            "enum": ["look", "close", "none"],
            "description": "`look`: the repository is looked at now; `close`: previews go; or nothing.",
        },
        "reason": {"type": "string", "description": "For people."},
    },
)
ERROR = shape(
    "Error",
    {
        "error": shape(
            "Failure",
            {
                "code": {"type": "string", "description": "One stable word for machines."},
                "message": {"type": "string", "description": "For people, with the next step."},
                "details": {"type": "object", "description": "`field` names what is wrong."},
            },
        )
    },
)
