"""What each field of the API's answers means, in one sentence. Pure. Called by `api.openapi.shapes`.

A field is described by its object's own word, else by the word that all objects share. A field
without either fails a test; one whose schema is described or named itself needs none.
"""

from collections.abc import Mapping
from typing import Any

_EVERYWHERE = {
    "id": "Its id.",
    "status": "Where it stands.",
    "created_at": "When it was made.",
    "deployment_id": "The deployment that is run; null while it is not known.",
    "url": "Where it is read.",
    "size": "Its size in bytes.",
    "sha256": "The SHA-256 of its bytes, in hexadecimal.",
}
_MEASURES = {
    "runs": "Runs that ended.",
    "run_seconds": "How long crews ran, all together.",
    "build_seconds": "How long images were built, without waiting.",
    "artifact_bytes": "Bytes of the artifacts that runs left.",
    "prompt_tokens": "Tokens that models were given, as far as crews told.",
    "completion_tokens": "Tokens that models answered with, as far as crews told.",
}
_DEPLOYMENT = {
    "message": "What it is about: the commit's subject, or what was said when it was made.",
    "activated_at": "When it became active last; null if it never was.",
    "git_sha": "The commit it was made from; null where none was named.",
    "build_logs_url": "Where its build log is read or followed.",
}
_RUN = {
    "project": "The project's name; empty for a run of a deployment that nobody knows.",
    "input": "What the crew was given.",
    "events_url": "Where its events are followed.",
    "started_at": "When the crew was started; null before.",
    "completed_at": "When it ended; null before.",
    "duration_ms": "How long the crew ran, in milliseconds; null before its end.",
    "error": "Why it failed; only of a run that did.",
}
_KEY = {
    "name": "What it is for.",
    "scopes": "What it may do; `admin` includes all.",
    "plan": "The plan its requests count by; null for the best of its projects.",
    "expires_at": "When it expires; null for never.",
    "last_used_at": "When it was used last, to the minute or so; null if it never was.",
}
_WORDS: dict[str, Mapping[str, str]] = {
    "Project": {
        "active_deployment_id": "The active deployment; null where nothing is built yet.",
        "ready": "Whether its source was resolved.",
    },
    "Ready": {
        "status": "Whether; null while it is not known.",
        "reason": "One stable word for machines.",
        "message": "For people, with the next step.",
    },
    "Variable": {"name": "The variable's name.", "updated_at": "When its value was set last."},
    "DeploymentCreated": _DEPLOYMENT,
    "DeploymentItem": _DEPLOYMENT,
    "Deployment": _DEPLOYMENT,
    "RunItem": _RUN,
    "RunCreated": _RUN,
    "Run": _RUN,
    "RunError": {
        "reason": "One stable word for machines; null where none is known.",
        "message": "For people, with the next step.",
    },
    "Event": {
        "id": "Its place among the run's events: from 1, without gaps.",
        "type": "What happened, such as `log` or `tool.called`.",
        "data": "What belongs to the type, with `run_id` and `timestamp`.",
    },
    "Artifact": {
        "name": "Its path below /app/artifacts.",
        "content_type": "Its media type, by its name.",
        "created_at": "When this version was stored.",
    },
    "Upload": {
        "upload_url": "Where the archive is sent to; signed, so that no key goes with it.",
        "build_context_url": "What POST /v1/deployments takes as `build_context_url`.",
        "method": "How it is sent.",
        "headers": "Headers to send with it.",
        "expires_at": "Until when it may be sent.",
    },
    "Key": _KEY,
    "KeyCreated": _KEY,
    "Usage": {
        "from": "The first day, in UTC.",
        "to": "The last day, in UTC; included.",
        "currency": "Of `cost`; null without prices.",
        "days": "The days on which something was used.",
        "total": "All of it together.",
    },
    "UsageDay": {"date": "The day, in UTC.", **_MEASURES},
    "UsageTotal": _MEASURES,
    "Error": {"error": "What went wrong."},
}


def described(title: str, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a field with its description, where it has none of its own."""
    text = _WORDS.get(title, {}).get(name) or _EVERYWHERE.get(name)
    if text is None or "title" in schema or "description" in schema:
        return dict(schema)
    return {**schema, "description": text}
