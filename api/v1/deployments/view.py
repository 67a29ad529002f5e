"""Deployments: rows to the API's JSON, and a body to a spec. Pure. Called by the routes of deployments."""

from collections.abc import Mapping
from typing import Any

from api.store.index.deployments import DeploymentRow
from api.v1 import reason_links
from api.v1.timestamps import moment
from crds import names


def item(row: DeploymentRow) -> dict[str, Any]:
    """A deployment as lists show it; `error` only where it failed."""
    shown = {
        "id": names.id_of(row.name),
        "project": row.project,
        "status": row.status,
        "message": row.message or "",
        "created_at": moment(row.created_at),
        "activated_at": moment(row.activated_at),
    }
    return {**shown, "error": dict(row.error or {})} if row.status == "failed" else shown


def created(row: DeploymentRow) -> dict[str, Any]:
    """A deployment as its creation is answered."""
    shown = item(row)
    return {key: shown[key] for key in ("id", "project", "status", "message", "created_at")}


def single(
    row: DeploymentRow, public_url: str, position: int | None = None, docs_url: str = ""
) -> dict[str, Any]:
    """A deployment by itself.

    `queue_position` only where it waits for a place to be built in; 1 is the next.
    """
    shown = item(row)
    if position is not None:
        shown["queue_position"] = position
    if "error" in shown:
        shown["error"] |= reason_links.link(docs_url, shown["error"].get("reason"))
    return {
        **shown,
        "git_sha": row.git_sha,
        "build_logs_url": f"{public_url}/v1/deployments/{shown['id']}/logs",
    }


def spec(body: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    """A Deployment's spec from a checked body and the source it was resolved to."""
    found: dict[str, Any] = {"project": body["project"], "source": dict(source)}
    for key, field in (("crew", "crew"), ("message", "message"), ("git_sha", "gitSha")):
        if key in body:
            found[field] = body[key]
    if "preview" in body:
        number = body["preview"].get("pull_request")
        found["preview"] = {} if number is None else {"pullRequest": number}
    return found
