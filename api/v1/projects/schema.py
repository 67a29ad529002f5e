"""JSON Schemas and examples of projects. Pure. The fields of the spec are read from the CRD."""

from typing import Any

from api.http import casing
from api.v1.fields import (
    CREATED_AT,
    CREATED_BY,
    DEPLOYMENT_ID,
    EXAMPLE_DEPLOYMENT_ID,
    EXAMPLE_PRINCIPAL,
    EXAMPLE_PROJECT_NAME,
    EXAMPLE_TIMESTAMP,
    EXPLANATION,
    PROJECT_NAME,
    TEXT,
    Schema,
    described,
    nullable,
    request_object,
    response_object,
)
from crds import schema
from crds.kinds import PROJECT

SPEC = schema.openapi(PROJECT)["properties"]["spec"]
_CREATE_SPEC: Schema = casing.request_schema(SPEC)["properties"]

_NAMESPACE: Schema = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
CREATE = request_object(
    ["name"],
    {
        "name": PROJECT_NAME,
        "namespace": described(
            _NAMESPACE,
            "The namespace of its objects, one of those that the installation serves; without, its own one.",
        ),
        **_CREATE_SPEC,
    },
    title="ProjectCreate",
)
PATCH = request_object(
    [], casing.request_schema(SPEC, merge=True)["properties"], minProperties=1, title="ProjectChange"
)
DETAIL = response_object(
    "Project",
    {
        "name": PROJECT_NAME,
        "namespace": described(
            nullable(_NAMESPACE), "The namespace of its objects; null for the installation's own one."
        ),
        **{name: field if name == "plan" else nullable(field) for name, field in _CREATE_SPEC.items()},
        "created_at": CREATED_AT,
        "created_by": CREATED_BY,
        "active_deployment_id": described(
            nullable(DEPLOYMENT_ID), "The active deployment; null before the first build."
        ),
        "ready": response_object(
            "Ready",
            {
                "status": described(
                    {"type": ["boolean", "null"]}, "The condition status; null while unknown."
                ),
                "reason": described(TEXT, "A stable code for programs."),
                "message": EXPLANATION,
            },
        ),
        "limited": described(
            nullable(
                response_object(
                    "Limited",
                    {"reason": described(TEXT, "A stable code for programs."), "message": EXPLANATION},
                )
            ),
            "What the project does not get although its settings ask for it; null if it gets all.",
        ),
        "failing_notifications": described(
            {"type": "array", "items": TEXT},
            "Names of notifications whose receiver took nothing for 24 hours.",
        ),
    },
)

SPEC_EXAMPLE = {
    "source": {"git": {"url": "https://git.example.com/team/research.git", "ref": {"branch": "main"}}}
}
CREATE_EXAMPLE = {"name": EXAMPLE_PROJECT_NAME, **SPEC_EXAMPLE}
PATCH_EXAMPLE = {"run": {"timeout": "30m"}}
EXAMPLE: dict[str, Any] = {
    "name": EXAMPLE_PROJECT_NAME,
    "namespace": None,
    "plan": "free",
    "source": SPEC_EXAMPLE["source"],
    "run": {"timeout": "30m"},
    "build": None,
    "pod": None,
    "webhook": None,
    "github": None,
    "commit_status": None,
    "oidc": None,
    "schedules": None,
    "notifications": None,
    "retention": None,
    "budget": None,
    "created_at": EXAMPLE_TIMESTAMP,
    "created_by": EXAMPLE_PRINCIPAL,
    "active_deployment_id": EXAMPLE_DEPLOYMENT_ID,
    "ready": {"status": True, "reason": "Resolved", "message": ""},
    "limited": None,
    "failing_notifications": [],
}
