"""Schemas and examples of path parameters. Pure. Called by `api.openapi.document`."""

from api.v1.artifacts import schema as artifacts
from api.v1.deliveries import schema as deliveries
from api.v1.env import schema as env
from api.v1.fields import (
    DEPLOYMENT_ID,
    EXAMPLE_DEPLOYMENT_ID,
    EXAMPLE_PROJECT_NAME,
    EXAMPLE_RUN_ID,
    PROJECT_NAME,
    TEXT,
    Schema,
)
from api.v1.keys import schema as keys
from api.v1.runs import schema as runs
from api.v1.schedules import schema as schedules
from api.v1.uploads import schema as uploads

SCHEMAS: dict[str, Schema] = {
    "name": PROJECT_NAME,
    "variable": env.NAME,
    "schedule": schedules.NAME,
    "artifact": {
        "type": "string",
        "minLength": 1,
        "description": "The name of the file; it may contain slashes.",
    },
    "request_id": runs.INPUT_REQUEST_ID,
    "runs": runs.ID,
    "deployments": DEPLOYMENT_ID,
    "deliveries": deliveries.ID,
    "uploads": TEXT,
    "api-keys": keys.ID,
}
"""By placeholder name; for `id`, by the collection before it."""
EXAMPLES = {
    "name": EXAMPLE_PROJECT_NAME,
    "variable": env.EXAMPLE_NAME,
    "schedule": schedules.EXAMPLE_NAME,
    "artifact": artifacts.EXAMPLE_NAME,
    "request_id": "q1",
    "runs": EXAMPLE_RUN_ID,
    "deployments": EXAMPLE_DEPLOYMENT_ID,
    "deliveries": deliveries.EXAMPLE_ID,
    "uploads": uploads.EXAMPLE_ID,
    "api-keys": keys.EXAMPLE_ID,
}
"""By the same names."""
