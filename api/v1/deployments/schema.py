"""JSON Schemas and examples of deployments. Pure. Limits and formats of the kind are read from its CRD."""

from api.http import casing
from api.v1.fields import (
    CREATED_AT,
    CREATED_BY,
    DEPLOYMENT_ID,
    DOCS_URL,
    EXAMPLE_DEPLOYMENT_ID,
    EXAMPLE_PRINCIPAL,
    EXAMPLE_PROJECT_NAME,
    EXAMPLE_TIMESTAMP,
    EXAMPLE_URL,
    NO_NUL_PATTERN,
    PROJECT_NAME,
    TEXT,
    TIMESTAMP,
    URL,
    WAITING,
    Schema,
    described,
    nullable,
    request_object,
    response_object,
)
from crds import schema
from crds.kinds import DEPLOYMENT
from crds.reasons import STATUS_OF_PHASE, DeploymentPhase

STATUSES = tuple(STATUS_OF_PHASE[phase] for phase in DeploymentPhase)
_PROPERTIES = schema.openapi(DEPLOYMENT)["properties"]
_SPEC = _PROPERTIES["spec"]["properties"]

CREATE = request_object(
    ["project"],
    {
        "project": PROJECT_NAME,
        "build_context_url": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4096,
            "description": "The build_context_url of an upload, or an archive's URL on an allowed host.",
        },
        "source": request_object(
            ["git"],
            {
                "git": request_object(
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
        "crew": casing.request_schema(_SPEC["crew"]),
        "message": {**casing.request_schema(_SPEC["message"]), "pattern": NO_NUL_PATTERN},
        "git_sha": {
            **casing.request_schema(_SPEC["gitSha"]),
            "description": "A commit's id: 7 to 64 lower-case hexadecimal digits.",
        },
        "preview": casing.request_schema(_SPEC["preview"]),
        "override": {
            "type": "boolean",
            "description": "Allow an archive for a project that follows a git repository.",
        },
    },
    title="DeploymentCreate",
)

_CREATED: dict[str, Schema] = {
    "id": DEPLOYMENT_ID,
    "project": PROJECT_NAME,
    "status": {"type": "string", "enum": list(STATUSES), "description": "Its status."},
    "message": described(TEXT, "Its purpose: the subject of the commit, or the message given at creation."),
    "created_at": CREATED_AT,
}
_STAGES = casing.request_schema(_PROPERTIES["status"]["properties"]["stages"])
_ERROR = casing.request_schema(_PROPERTIES["status"]["properties"]["error"])
_ITEM: dict[str, Schema] = {
    **_CREATED,
    "activated_at": described(nullable(TIMESTAMP), "When it last became active; null if never."),
    "error": {
        "title": "BuildError",
        **_ERROR,
        "properties": {**_ERROR["properties"], "docs_url": DOCS_URL},
    },
    "smoke_run": {
        "type": "string",
        "description": (
            "The id of its smoke run, which must succeed before it becomes active; only if its "
            "configuration has one and its image is built."
        ),
    },
    "is_preview": {
        "type": "boolean",
        "description": "Whether it is a preview, which never becomes active; absent for others.",
    },
}
CREATED = response_object("DeploymentCreated", _CREATED)
ITEM = response_object("DeploymentItem", _ITEM, ("error", "smoke_run", "is_preview"))
DETAIL = response_object(
    "Deployment",
    {
        **_ITEM,
        "created_by": CREATED_BY,
        "git_sha": described(nullable(TEXT), "The commit it was built from; null without one."),
        "build_logs_url": described(URL, "The URL of its build log."),
        "queue_position": {
            "type": "integer",
            "minimum": 1,
            "description": "Its position in the build queue; only while it is queued.",
        },
        "waiting": WAITING,
        "cancel_requested": {
            "type": "boolean",
            "description": "Whether its build is being canceled; only from the request until it has ended.",
        },
        "stages": {**_STAGES, "items": {**_STAGES["items"], "title": "BuildStage"}},
        "entrypoints": {
            "type": "array",
            "items": TEXT,
            "description": (
                "Names of the crews or graphs of its configuration, of which a run can choose one as "
                "`entrypoint`; only if the configuration has names."
            ),
        },
    },
    (
        "queue_position", "waiting", "cancel_requested", "stages", "entrypoints", "smoke_run", "is_preview",
        "error",
    ),
)  # fmt: skip

INPUTS = response_object(
    "DeploymentInputs",
    {
        "schema": {
            "type": "object",
            "description": "The JSON Schema of the input; any object if configuration and source tell none.",
        },
        "declared": {
            "type": "boolean",
            "description": (
                "Whether the configuration declares it, and other inputs are refused; false if it was found "
                "in the source, or before the image is built."
            ),
        },
    },
)
INPUTS_EXAMPLE = {
    "schema": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
    "declared": True,
}
CREATE_EXAMPLE = {
    "project": EXAMPLE_PROJECT_NAME,
    "source": {"git": {"commit": "1f7a7a4c0d7e3b6f0a8f5d2c9b4e6a1d3c5f7e9b"}},
    "message": "Ask for tides",
}
CREATED_EXAMPLE = {
    "id": EXAMPLE_DEPLOYMENT_ID,
    "project": EXAMPLE_PROJECT_NAME,
    "status": "building",
    "message": "Ask for tides",
    "created_at": EXAMPLE_TIMESTAMP,
}
ITEM_EXAMPLE = {**CREATED_EXAMPLE, "status": "active", "activated_at": EXAMPLE_TIMESTAMP}
EXAMPLE = {
    **ITEM_EXAMPLE,
    "created_by": EXAMPLE_PRINCIPAL,
    "git_sha": "1f7a7a4",
    "build_logs_url": f"{EXAMPLE_URL}/deployments/{EXAMPLE_DEPLOYMENT_ID}/logs",
    "stages": [{"name": "queued", "seconds": 1}, {"name": "fetch", "seconds": 0.21}],
}
LOG_EXAMPLE = "Collecting crewai\n"
