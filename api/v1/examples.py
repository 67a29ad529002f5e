"""Example bodies and responses, all of one consistent installation. Pure.

Called by the endpoint tables of `api.v1`; the tests run every example.
"""

from typing import Any

TIMESTAMP = "2026-11-21T10:00:00.000000Z"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
PROJECT_NAME = "research"
PATH = {
    "name": PROJECT_NAME,
    "variable": "OPENAI_API_KEY",
    "artifact": "report.md",
    "runs": "run_ab12",
    "deployments": "dep_ab12",
    "uploads": "upl_ab12",
    "api-keys": "K3yK3yK3yK",
}
"""By placeholder name; for `id`, by the collection before it."""

PROJECT_SPEC = {
    "source": {"git": {"url": "https://git.example.com/team/research.git", "ref": {"branch": "main"}}}
}
PROJECT_CREATE = {"name": PROJECT_NAME, **PROJECT_SPEC}
PROJECT_PATCH = {"run": {"timeout": "30m"}}
PROJECT: dict[str, Any] = {
    "name": PROJECT_NAME,
    "plan": "free",
    "source": PROJECT_SPEC["source"],
    "run": {"timeout": "30m"},
    "build": None,
    "pod": None,
    "webhook": None,
    "github": None,
    "oidc": None,
    "retention": None,
    "created_at": TIMESTAMP,
    "active_deployment_id": "dep_ab12",
    "ready": {"status": True, "reason": "Resolved", "message": ""},
}
ENV_REPLACE = {"variables": {"OPENAI_API_KEY": "sk-example", "TOPIC": "tides"}}
ENV_SET = {"value": "sk-example"}
VARIABLE = {"name": "OPENAI_API_KEY", "updated_at": "2026-11-21T10:00:00Z"}
UPLOAD_CREATE = {"project": PROJECT_NAME, "size": 20480, "sha256": DIGEST}
UPLOAD = {
    "id": "upl_ab12",
    "upload_url": "https://crewyard.example.com/v1/uploads/upl_ab12/content?token=signature",
    "build_context_url": "https://crewyard.example.com/v1/uploads/upl_ab12/content",
    "method": "PUT",
    "headers": {"Content-Type": "application/octet-stream"},
    "expires_at": "2026-11-21T11:00:00.000000Z",
}
UPLOAD_STORED = {"id": "upl_ab12", "size": 20480, "sha256": DIGEST}
DEPLOYMENT_CREATE = {
    "project": PROJECT_NAME,
    "source": {"git": {"commit": "1f7a7a4c0d7e3b6f0a8f5d2c9b4e6a1d3c5f7e9b"}},
    "message": "Ask for tides",
}
DEPLOYMENT_CREATED = {
    "id": "dep_ab12",
    "project": PROJECT_NAME,
    "status": "building",
    "message": "Ask for tides",
    "created_at": TIMESTAMP,
}
DEPLOYMENT_ITEM = {**DEPLOYMENT_CREATED, "status": "active", "activated_at": TIMESTAMP}
DEPLOYMENT = {
    **DEPLOYMENT_ITEM,
    "git_sha": "1f7a7a4",
    "build_logs_url": "https://crewyard.example.com/v1/deployments/dep_ab12/logs",
}
RUN_CREATE = {"deployment": PROJECT_NAME, "input": {"topic": "tides"}, "timeout": "30m"}
RUN_ITEM = {
    "id": "run_ab12",
    "deployment_id": "dep_ab12",
    "project": PROJECT_NAME,
    "status": "succeeded",
    "created_at": TIMESTAMP,
    "completed_at": "2026-11-21T10:00:05.000000Z",
    "duration_ms": 4210,
}
RUN_CREATED = {
    "id": "run_ab12",
    "status": "pending",
    "created_at": TIMESTAMP,
    "deployment_id": "dep_ab12",
    "project": PROJECT_NAME,
    "input": {"topic": "tides"},
    "events_url": "https://crewyard.example.com/v1/runs/run_ab12/events",
}
RUN = {
    **RUN_CREATED,
    **RUN_ITEM,
    "started_at": "2026-11-21T10:00:00.500000Z",
    "output": {"report": "Two tides a day."},
}
EVENT = {
    "id": 2,
    "type": "log",
    "data": {
        "run_id": "run_ab12",
        "timestamp": "2026-11-21T10:00:01.000000Z",
        "message": "Reading about tides",
        "level": "info",
    },
}
STREAM = (
    'retry: 2000\n\nid: 2\nevent: log\ndata: {"run_id":"run_ab12",'
    '"timestamp":"2026-11-21T10:00:01.000000Z","message":"Reading about tides","level":"info"}\n\n'
)
LOG = "Reading about tides\n"
ARTIFACT = {
    "name": "report.md",
    "size": 1280,
    "content_type": "text/markdown",
    "sha256": DIGEST,
    "partial": False,
    "created_at": TIMESTAMP,
    "url": "https://crewyard.example.com/v1/runs/run_ab12/artifacts/report.md",
}
KEY_CREATE = {
    "name": "Deploy from CI",
    "scopes": ["deploy", "run"],
    "projects": [PROJECT_NAME],
    "expires_at": "2027-11-21T00:00:00Z",
}
KEY = {
    "id": PATH["api-keys"],
    "name": "Deploy from CI",
    "scopes": ["deploy", "run"],
    "projects": [PROJECT_NAME],
    "plan": None,
    "created_at": TIMESTAMP,
    "expires_at": "2027-11-21T00:00:00Z",
    "last_used_at": None,
}
KEY_CREATED = {**KEY, "key": "crw_K3yK3yK3yK_…"}
HOOK = {
    "ref": "refs/heads/main",
    "after": "1f7a7a4c0d7e3b6f0a8f5d2c9b4e6a1d3c5f7e9b",
    "repository": {"full_name": "team/research", "default_branch": "main"},
}
HOOK_SIGNATURE = f"sha256={DIGEST}"
HOOK_ACCEPTED = {"effect": "look", "reason": "the repository is polled now"}
HOOK_PING = {"effect": "none", "reason": "a ping; the webhook works"}
_USED = {
    "runs": 12,
    "run_seconds": 340.5,
    "build_seconds": 41.0,
    "artifact_bytes": 15360,
    "prompt_tokens": 41200,
    "completion_tokens": 8300,
    "cost": 0.184,
}
USAGE = {
    "project": PROJECT_NAME,
    "from": "2026-11-21",
    "to": "2026-11-21",
    "currency": "USD",
    "days": [{"date": "2026-11-21", **_USED}],
    "total": _USED,
}
USAGE_CSV = (
    "date,runs,run_seconds,build_seconds,artifact_bytes,prompt_tokens,completion_tokens,cost\r\n"
    "2026-11-21,12,340.5,41.0,15360,41200,8300,0.184\r\n"
)
