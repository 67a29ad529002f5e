"""JSON Schemas (Draft 2020-12) of all request bodies of the API. Called by the endpoint tables of `api.v1`.

Limits and formats that a kind defines are read from its CRD, so they have one definition.
"""

from typing import Any

from api.auth.scopes import SCOPES
from api.http import casing
from crds import schema
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.reasons import STATUS_OF_PHASE, DeploymentPhase, RunPhase

NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
PROJECT_SPEC = schema.openapi(PROJECT)["properties"]["spec"]
_DEPLOYMENT_SPEC = schema.openapi(DEPLOYMENT)["properties"]["spec"]["properties"]
_RUN_SPEC = schema.openapi(RUN)["properties"]["spec"]["properties"]
RUN_STATUSES = tuple(STATUS_OF_PHASE[phase] for phase in RunPhase)
DEPLOYMENT_STATUSES = tuple(STATUS_OF_PHASE[phase] for phase in DeploymentPhase)
MAX_VARIABLES = 500

PROJECT_NAME: dict[str, Any] = {
    "title": "ProjectName",
    "type": "string",
    "minLength": 1,
    "maxLength": 52,
    "pattern": NAME_PATTERN,
    "description": "A project's name: lower-case letters, digits and hyphens, for example research-crew.",
}
DEPLOYMENT_ID: dict[str, Any] = {
    "title": "DeploymentId",
    "type": "string",
    "pattern": "^dep_[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": 52,
    "description": "A deployment's id, for example dep_ab12.",
}


def _object(required: list[str], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
        **more,
    }


def _project(merge: bool) -> dict[str, Any]:
    spec: dict[str, Any] = casing.request_schema(PROJECT_SPEC, merge)["properties"]
    if merge:
        return _object([], spec, minProperties=1, title="ProjectChange")
    return _object(["name"], {"name": PROJECT_NAME, **spec}, title="ProjectCreate")


PROJECT_CREATE = _project(merge=False)
PROJECT_PATCH = _project(merge=True)

VARIABLE_NAME: dict[str, Any] = {
    "type": "string",
    "maxLength": 128,
    "pattern": "^(?!CREWYARD_|PYTHON|PATH$|HOME$)[A-Za-z_][A-Za-z0-9_]*$",
    "description": (
        "A variable's name consists of letters, digits and underscores and does not begin with a digit; "
        "CREWYARD_*, PYTHON*, PATH and HOME are set by the service."
    ),
}
_VALUE: dict[str, Any] = {
    "type": "string",
    "maxLength": 262144,
    "pattern": "^[^\\u0000]*$",
    "description": "A variable's value, without the character NUL.",
}
ENV_REPLACE = _object(
    ["variables"],
    {
        "variables": {
            "type": "object",
            "maxProperties": MAX_VARIABLES,
            "propertyNames": VARIABLE_NAME,
            "additionalProperties": _VALUE,
            "description": "All variables of the project by name; variables not listed are removed.",
        }
    },
    title="Variables",
)
ENV_SET = _object(["value"], {"value": _VALUE}, title="VariableValue")

UPLOAD_CREATE = _object(
    ["project", "size"],
    {
        "project": PROJECT_NAME,
        "size": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1 << 50,
            "description": "Size of the archive in bytes.",
        },
        "sha256": {
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "The archive's SHA-256 as 64 lower-case hexadecimal digits.",
        },
    },
    title="UploadCreate",
)

KEY_CREATE = _object(
    ["name", "scopes"],
    {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "pattern": "^[^\\u0000]*$",
            "description": "Purpose of the key.",
        },
        "scopes": {
            "type": "array",
            "minItems": 1,
            "maxItems": len(SCOPES),
            "uniqueItems": True,
            "items": {"type": "string", "enum": SCOPES},
            "description": "Scopes of the key; admin includes all others, and every key can read.",
        },
        "projects": {
            "type": ["array", "null"],
            "minItems": 1,
            "maxItems": 100,
            "uniqueItems": True,
            "items": PROJECT_NAME,
            "description": "Projects of the key; all projects if null or omitted.",
        },
        "plan": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 63,
            "pattern": NAME_PATTERN,
            "description": "Plan for the rate limit of the key; the best plan of its projects if omitted.",
        },
        "expires_at": {
            "type": ["string", "null"],
            "maxLength": 40,
            "format": "date-time",
            "description": "Expiry time, for example 2027-01-01T00:00:00Z; never if omitted.",
        },
    },
    title="KeyCreate",
)

_PRINTABLE = "^[^\\u0000]*$"
DEPLOYMENT_CREATE = _object(
    ["project"],
    {
        "project": PROJECT_NAME,
        "build_context_url": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4096,
            "description": "The build_context_url of an upload, or an archive's URL on an allowed host.",
        },
        "source": _object(
            ["git"],
            {
                "git": _object(
                    ["commit"],
                    {
                        "commit": {
                            "type": "string",
                            "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$",
                            "description": "A commit's full id, as git rev-parse HEAD prints it.",
                        }
                    },
                )
            },
            description="A commit of the project's repository, instead of an archive.",
        ),
        "crew": casing.request_schema(_DEPLOYMENT_SPEC["crew"]),
        "message": {
            **casing.request_schema(_DEPLOYMENT_SPEC["message"]),
            "pattern": _PRINTABLE,
        },
        "git_sha": {
            **casing.request_schema(_DEPLOYMENT_SPEC["gitSha"]),
            "description": "A commit's id: 7 to 64 lower-case hexadecimal digits.",
        },
        "preview": casing.request_schema(_DEPLOYMENT_SPEC["preview"]),
        "override": {
            "type": "boolean",
            "description": "Allow an archive for a project that follows a git repository.",
        },
    },
    title="DeploymentCreate",
)

RUN_CREATE = _object(
    ["deployment"],
    {
        "deployment": {
            "type": "string",
            "minLength": 1,
            "maxLength": 52,
            "pattern": "^(dep_)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            "description": "A deployment's id (dep_ab12), or a project's name for its active deployment.",
        },
        "input": {"type": "object", "description": "The inputs of the crew."},
        "entrypoint": {
            **casing.request_schema(_RUN_SPEC["entrypoint"]),
            "pattern": (
                "^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*"
                ":[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*$"
            ),
            "description": "The callable to run, as module:object, for example pkg.crew:MyCrew.",
        },
        "timeout": {
            "type": "string",
            "maxLength": 32,
            "pattern": "^(?=.*[1-9])([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$",
            "description": "A duration in hours, minutes and seconds, for example 90s, 30m or 1h30m.",
        },
    },
    title="RunCreate",
)
