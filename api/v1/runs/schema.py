"""JSON Schemas and examples of runs and their events. Pure. Limits of the kind are read from its CRD."""

from api.http import casing
from api.usage_event import MAX_CALL_MS
from api.v1 import model_usage
from api.v1.fields import (
    COUNT,
    CREATED_AT,
    CREATED_BY,
    DEPLOYMENT_ID,
    DOCS_URL,
    EXAMPLE_DEPLOYMENT_ID,
    EXAMPLE_PRINCIPAL,
    EXAMPLE_PROJECT_NAME,
    EXAMPLE_RUN_ID,
    EXAMPLE_TIMESTAMP,
    EXAMPLE_URL,
    EXPLANATION,
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
from crds import entrypoints, schema
from crds.kinds import RUN
from crds.reasons import STATUS_OF_PHASE, RunPhase
from crds.runs import labels as run_labels

STATUSES = tuple(STATUS_OF_PHASE[phase] for phase in RunPhase)
_SPEC = schema.openapi(RUN)["properties"]["spec"]["properties"]

ID: Schema = {
    "title": "RunId",
    "type": "string",
    "pattern": "^run_[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": 52,
    "description": "The id of a run, such as run_ab12.",
}
_DEPLOYMENT: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 52,
    "pattern": "^(dep_)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "description": "A deployment's id (dep_ab12), or a project's name for its active deployment.",
}
LABELS: Schema = {
    "type": "object",
    "maxProperties": run_labels.MAX_LABELS,
    "propertyNames": {
        "type": "string",
        "maxLength": run_labels.NAME_MAX_LENGTH,
        "pattern": f"^{run_labels.USER_NAME_PATTERN}$",
        "description": run_labels.NAME_RULE,
    },
    "additionalProperties": {
        "type": "string",
        "maxLength": 63,
        "pattern": f"^{run_labels.VALUE_PATTERN}$",
        "description": run_labels.VALUE_RULE,
    },
    "description": "Labels by name, at most 16, with the rules of Kubernetes; lists filter by them.",
}
_LABEL = f"{run_labels.NAME_PATTERN}={run_labels.VALUE_PATTERN}"
LABEL_FILTER: Schema = {
    "type": "string",
    "maxLength": 2000,
    "pattern": f"^{_LABEL}(,{_LABEL}){{0,3}}$",
    "description": "Only runs with this label, such as team=tides; several with commas, at most 4.",
}
_STATUS = "|".join(STATUSES)
STATUS_FILTER: Schema = {
    "type": "string",
    "maxLength": 100,
    "pattern": f"^({_STATUS})(,({_STATUS})){{0,4}}$",
    "description": "A status, or several with commas, such as pending,running.",
}
STATUS_EXPECTED = f"must be one of {', '.join(STATUSES)}, or several with commas"
_ENTRYPOINT: Schema = {
    **casing.request_schema(_SPEC["entrypoint"]),
    "pattern": entrypoints.PATTERN,
    "description": (
        "What to run instead of the deployment's entrypoint: one of its entrypoints by name, "
        "module:object (for example pkg.crew:MyCrew), or a file of the repository (main.py). "
        "All but a name need the scope deploy."
    ),
}
CREATE = request_object(
    ["deployment"],
    {
        "deployment": _DEPLOYMENT,
        "input": {"type": "object", "description": "The inputs of the crew."},
        "entrypoint": _ENTRYPOINT,
        "timeout": {
            "type": "string",
            "maxLength": 32,
            "pattern": "^(?=.*[1-9])([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$",
            "description": "A duration in hours, minutes and seconds, for example 90s, 30m or 1h30m.",
        },
        "config": {"type": "object", "description": _SPEC["config"]["description"]},
        "context": {"type": "object", "description": _SPEC["context"]["description"]},
        "labels": LABELS,
    },
    title="RunCreate",
)
RERUN = request_object(
    [],
    {
        "deployment": described(
            _DEPLOYMENT, "Another deployment's id, or a project's name for its active one."
        ),
        "input": {"type": "object", "description": "The inputs of the crew, instead of those of the run."},
        "entrypoint": described(
            nullable(_ENTRYPOINT),
            "What to run instead of the entrypoint of the run; null for that of the deployment.",
        ),
    },
    title="RunRerun",
)
RERUN_EXAMPLE = {"deployment": EXAMPLE_PROJECT_NAME}

_BASE: dict[str, Schema] = {
    "id": ID,
    "status": {"type": "string", "enum": list(STATUSES), "description": "Its status."},
    "created_at": CREATED_AT,
    "deployment_id": described(nullable(DEPLOYMENT_ID), "The deployment of the run; null while unknown."),
    # Empty for a Run created with kubectl that names an unknown deployment.
    "project": described(TEXT, "The name of the project; empty if the deployment is unknown."),
    "labels": {
        "type": "object",
        "additionalProperties": TEXT,
        "description": "Its labels; crewyard.dev/schedule names the schedule that started it.",
    },
}
_END: dict[str, Schema] = {
    "completed_at": described(nullable(TIMESTAMP), "When it finished; null before."),
    "duration_ms": described(
        nullable(COUNT), "Run time of the crew in milliseconds; null before it finishes."
    ),
}
_AMOUNT: Schema = {"type": "number", "minimum": 0}
_USAGE: dict[str, Schema] = {
    "usage": {
        **nullable(
            response_object(
                "RunUsage",
                {
                    "prompt_tokens": described(COUNT, "Prompt tokens of models, as reported by the crew."),
                    "completion_tokens": described(
                        COUNT, "Completion tokens of models, as reported by the crew."
                    ),
                    "artifact_bytes": described(COUNT, "Bytes of its artifacts."),
                    "cost": described(
                        nullable(_AMOUNT),
                        "Its cost by the prices of the installation, without the build of its image; "
                        "null without prices.",
                    ),
                    "currency": described(nullable(TEXT), "The currency of `cost`; null without prices."),
                    "models": model_usage.SCHEMA,
                },
            )
        ),
        "description": "What it used; null until some seconds after its end.",
    }
}
_REQUEST: dict[str, Schema] = {
    "trace_id": {
        "anyOf": [{"type": "string", "pattern": "^[0-9a-f]{32}$"}, {"type": "null"}],
        "description": "The id of its trace: that of the header traceparent, else its own.",
    },
    "input": {"type": "object", "description": "The input of the crew."},
    "events_url": described(URL, "The URL of its event stream."),
}
_ERROR = response_object(
    "RunError",
    {
        "reason": described(nullable(TEXT), "A stable code for programs; null if unknown."),
        "message": described(nullable(TEXT), EXPLANATION["description"]),
        "docs_url": DOCS_URL,
    },
    ("docs_url",),
)
_REQUEST_ID = {
    "type": "string",
    "pattern": "^[a-z0-9]{1,32}$",
    "description": "The id of a question of the run, such as q1.",
}
INPUT_REQUEST_ID: Schema = {"title": "InputRequestId", **_REQUEST_ID}
INPUT_REQUEST = response_object(
    "InputRequest",
    {
        "request_id": described(_REQUEST_ID, "Its id within the run, such as q1."),
        "prompt": described(TEXT, "The question."),
        "schema": {
            "type": "object",
            "description": "The JSON Schema of the answer; absent if any JSON value is allowed.",
        },
        "choices": {
            "type": "array",
            "items": {},
            "description": "The only answers that are allowed; absent if there are others.",
        },
        "created_at": described(TIMESTAMP, "When the crew asked."),
        "expires_at": described(TIMESTAMP, "Until when it can be answered."),
    },
    ("schema", "choices"),
)
ANSWER = request_object(
    ["value"],
    {"value": {"description": "The answer: any JSON value of at most 1 MiB that fits the question."}},
    title="InputAnswer",
)
ANSWERED = response_object(
    "InputReceived",
    {
        "request_id": described(_REQUEST_ID, "The id of the question."),
        "received_at": described(TIMESTAMP, "When the answer was stored."),
        "by": described(TEXT, "Who answered: the id of the key, or the subject of the token."),
    },
)
_SMOKE: dict[str, Schema] = {
    "smoke": {
        "type": "boolean",
        "description": "Whether it is the smoke run of its deployment; absent for other runs.",
    }
}
ITEM = response_object("RunItem", {**_BASE, **_END, **_USAGE, **_SMOKE}, tuple(_SMOKE))
_STARTED_AT = described(nullable(TIMESTAMP), "When the crew started; null before.")
_STATE: dict[str, Schema] = {
    "queue_position": {
        "type": "integer",
        "minimum": 1,
        "description": "How many slots must become free until it starts; only while it waits.",
    },
    "waiting": WAITING,
    "input_requests": {
        "type": "array",
        "items": INPUT_REQUEST,
        "description": "The questions that the crew waits to have answered; only while there are any.",
    },
    "cancel_requested": {
        "type": "boolean",
        "description": "Whether it is being canceled; only from the request until it has finished.",
    },
    "output": {"description": "The return value of the crew; only for a succeeded run."},
    "error": _ERROR,
    **_SMOKE,
}
"""Fields that a run has only in some states."""
_REQUESTED: dict[str, Schema] = {
    "entrypoint": described(
        nullable(TEXT), "What was requested instead of the deployment's entrypoint, or null."
    ),
    "timeout": described(nullable(TEXT), "The requested timeout, such as 30m, or null."),
    "rerun_of": {"anyOf": [ID, {"type": "null"}], "description": "The run that it repeats, or null."},
}
_OUTCOME = {**_END, **_USAGE, "created_by": CREATED_BY, "started_at": _STARTED_AT, **_REQUESTED, **_STATE}
_AWAITED = {name: field for name, field in _OUTCOME.items() if name not in ("input_requests", "smoke")}
CREATED = response_object("RunCreated", {**_BASE, **_REQUEST, **_AWAITED}, tuple(_AWAITED))
"""With the fields of the outcome only if the request prefers to wait."""
DETAIL = response_object("Run", {**_BASE, **_REQUEST, **_OUTCOME}, tuple(_STATE))
EVENT = response_object(
    "Event",
    {
        "id": {
            "type": "integer",
            "minimum": 1,
            "description": "Its sequence number in the run: from 1, without gaps.",
        },
        "type": described(TEXT, "The type of the event, such as `log` or `tool.called`."),
        "data": {
            "type": "object",
            "description": "The data of this type, with `run_id` and `timestamp`. A `usage` event has "
            "`model`, `prompt_tokens`, `completion_tokens` and, if it is known, the call's `duration_ms`, an "
            f"integer from 0 to {MAX_CALL_MS}.",
        },
    },
)

CREATE_EXAMPLE = {"deployment": EXAMPLE_PROJECT_NAME, "input": {"topic": "tides"}, "timeout": "30m"}
ITEM_EXAMPLE = {
    "id": EXAMPLE_RUN_ID,
    "deployment_id": EXAMPLE_DEPLOYMENT_ID,
    "project": EXAMPLE_PROJECT_NAME,
    "status": "succeeded",
    "created_at": EXAMPLE_TIMESTAMP,
    "completed_at": "2026-11-21T10:00:05.000000Z",
    "duration_ms": 4210,
    "labels": {"team": "tides"},
    "usage": {
        "prompt_tokens": 1200,
        "completion_tokens": 300,
        "artifact_bytes": 2048,
        "cost": 0.0042,
        "currency": "USD",
        "models": {"gpt-4o": {"prompt_tokens": 1200, "completion_tokens": 300, "cost": 0.0042}},
    },
}
CREATED_EXAMPLE = {
    "id": EXAMPLE_RUN_ID,
    "status": "pending",
    "created_at": EXAMPLE_TIMESTAMP,
    "deployment_id": EXAMPLE_DEPLOYMENT_ID,
    "project": EXAMPLE_PROJECT_NAME,
    "labels": {"team": "tides"},
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "input": {"topic": "tides"},
    "events_url": f"{EXAMPLE_URL}/runs/{EXAMPLE_RUN_ID}/events",
}
EXAMPLE = {
    **CREATED_EXAMPLE,
    **ITEM_EXAMPLE,
    "created_by": EXAMPLE_PRINCIPAL,
    "started_at": "2026-11-21T10:00:00.500000Z",
    "entrypoint": None,
    "timeout": "30m",
    "rerun_of": None,
    "output": {"report": "Two tides a day."},
}
ANSWER_EXAMPLE = {"value": "yes"}
ANSWERED_EXAMPLE = {
    "request_id": "q1",
    "received_at": "2026-11-21T10:05:00.000000Z",
    "by": "key_ab12",
}
EVENT_EXAMPLE = {
    "id": 2,
    "type": "log",
    "data": {
        "run_id": EXAMPLE_RUN_ID,
        "timestamp": "2026-11-21T10:00:01.000000Z",
        "message": "Reading about tides",
        "level": "info",
    },
}
STREAM_EXAMPLE = (
    'retry: 2000\n\nid: 2\nevent: log\ndata: {"run_id":"run_ab12",'
    '"timestamp":"2026-11-21T10:00:01.000000Z","message":"Reading about tides","level":"info"}\n\n'
)
LOG_EXAMPLE = "Reading about tides\n"
