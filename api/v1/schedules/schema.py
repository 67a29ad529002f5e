"""JSON Schemas and examples of schedules. Pure. The fields are read from the CRD."""

from typing import Any

from api.http import casing
from api.v1.fields import TEXT, TIMESTAMP, Schema, described, nullable, request_object, response_object
from api.v1.runs.schema import ID as RUN_ID
from crds import entrypoints, schema
from crds.kinds import PROJECT

SPEC = schema.openapi(PROJECT)["properties"]["spec"]["properties"]["schedules"]
MAX_SCHEDULES: int = SPEC["maxItems"]
_FIELDS: dict[str, Schema] = casing.request_schema(SPEC)["items"]["properties"]
_FIELDS["entrypoint"] = {**_FIELDS["entrypoint"], "pattern": entrypoints.PATTERN}

NAME: Schema = _FIELDS["name"]
SET = request_object(
    ["cron"], {name: field for name, field in _FIELDS.items() if name != "name"}, title="ScheduleSpec"
)
ITEM = response_object(
    "Schedule",
    {
        "name": NAME,
        **{
            name: field if name == "cron" else nullable(field)
            for name, field in _FIELDS.items()
            if name not in ("name", "suspend", "concurrency_policy", "time_zone")
        },
        "time_zone": _FIELDS["time_zone"],
        "concurrency_policy": _FIELDS["concurrency_policy"],
        "suspend": _FIELDS["suspend"],
        "last_time": described(nullable(TIMESTAMP), "The time for which a run was last created."),
        "last_run_id": {
            "anyOf": [RUN_ID, {"type": "null"}],
            "description": "The id of that run; null before the first.",
        },
        "next_time": described(
            nullable(TIMESTAMP),
            "The first time that is not handled; in the past while the schedule is suspended or waits.",
        ),
        "message": described(
            nullable(TEXT), "Why the last due time has not started a run, with the next step; null if it has."
        ),
    },
)

EXAMPLE_NAME = "weekdays"
SET_EXAMPLE: dict[str, Any] = {
    "cron": "0 7 * * MON-FRI",
    "time_zone": "Europe/Berlin",
    "input": {"topic": "tides"},
    "labels": {"team": "tides"},
    "concurrency_policy": "Forbid",
    "starting_deadline": "10m",
}
EXAMPLE = {
    "name": EXAMPLE_NAME,
    **SET_EXAMPLE,
    "entrypoint": None,
    "suspend": False,
    "last_time": "2026-11-20T06:00:00Z",
    "last_run_id": "run_weekdays-202611200600-ab12cd34ef",
    "next_time": "2026-11-23T06:00:00Z",
    "message": None,
}
