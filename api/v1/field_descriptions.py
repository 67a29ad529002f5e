"""Descriptions of response fields, one sentence each. Pure. Called by `api.v1.response_schemas`.

A field has the description of its object, else the one shared by all objects. A field without
either fails a test, unless its schema has a title or a description itself.
"""

from collections.abc import Mapping
from typing import Any

_SHARED = {
    "id": "Its id.",
    "status": "Its status.",
    "created_at": "When it was created.",
    "deployment_id": "The deployment of the run; null while unknown.",
    "url": "Its download URL.",
    "size": "Its size in bytes.",
    "sha256": "The SHA-256 of its bytes, in hexadecimal.",
}
_MEASURES = {
    "runs": "Finished runs.",
    "run_seconds": "Total run time of crews, in seconds.",
    "build_seconds": "Total build time of images in seconds, without queueing.",
    "artifact_bytes": "Bytes of the artifacts of runs.",
    "prompt_tokens": "Prompt tokens of models, as reported by crews.",
    "completion_tokens": "Completion tokens of models, as reported by crews.",
}
_DEPLOYMENT = {
    "message": "Its purpose: the subject of the commit, or the message given at creation.",
    "activated_at": "When it last became active; null if never.",
    "git_sha": "The commit it was built from; null without one.",
    "build_logs_url": "The URL of its build log.",
}
_RUN = {
    "project": "The name of the project; empty if the deployment is unknown.",
    "input": "The input of the crew.",
    "events_url": "The URL of its event stream.",
    "started_at": "When the crew started; null before.",
    "completed_at": "When it finished; null before.",
    "duration_ms": "Run time of the crew in milliseconds; null before it finishes.",
    "error": "Why it failed; only for a failed run.",
}
_KEY = {
    "name": "Its purpose.",
    "scopes": "Its scopes; `admin` includes all.",
    "plan": "The plan that limits its requests; null for the best plan of its projects.",
    "expires_at": "When it expires; null if never.",
    "last_used_at": "When it was last used, to about a minute; null if never.",
}
_BY_TITLE: dict[str, Mapping[str, str]] = {
    "Project": {
        "active_deployment_id": "The active deployment; null before the first build.",
        "ready": "Whether its source is resolved.",
    },
    "Ready": {
        "status": "The condition status; null while unknown.",
        "reason": "A stable code for programs.",
        "message": "A sentence for users, with the next step.",
    },
    "Variable": {"name": "The name of the variable.", "updated_at": "When its value was last set."},
    "DeploymentCreated": _DEPLOYMENT,
    "DeploymentItem": _DEPLOYMENT,
    "Deployment": _DEPLOYMENT,
    "RunItem": _RUN,
    "RunCreated": _RUN,
    "Run": _RUN,
    "RunError": {
        "reason": "A stable code for programs; null if unknown.",
        "message": "A sentence for users, with the next step.",
    },
    "Event": {
        "id": "Its sequence number in the run: from 1, without gaps.",
        "type": "The type of the event, such as `log` or `tool.called`.",
        "data": "The data of this type, with `run_id` and `timestamp`.",
    },
    "Artifact": {
        "name": "Its path below /app/artifacts.",
        "content_type": "Its media type, derived from its name.",
        "created_at": "When this version was stored.",
    },
    "Upload": {
        "upload_url": "The signed URL to send the archive to, without an API key.",
        "build_context_url": "The `build_context_url` for POST /v1/deployments.",
        "method": "The HTTP method of the upload.",
        "headers": "Headers to send with it.",
        "expires_at": "When the upload URL expires.",
    },
    "Key": _KEY,
    "KeyCreated": _KEY,
    "Usage": {
        "from": "The first day, in UTC.",
        "to": "The last day, in UTC, inclusive.",
        "currency": "The currency of `cost`; null without prices.",
        "days": "The days with usage.",
        "total": "The total of all days.",
    },
    "UsageDay": {"date": "The day, in UTC.", **_MEASURES},
    "UsageTotal": _MEASURES,
    "Error": {"error": "The error."},
}


def with_description(title: str, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field with its description, unless it has one of its own."""
    text = _BY_TITLE.get(title, {}).get(name) or _SHARED.get(name)
    if text is None or "title" in schema or "description" in schema:
        return dict(schema)
    return {**schema, "description": text}
