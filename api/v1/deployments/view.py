"""Deployment rows as JSON, and request bodies as specs. Pure. Called by the routes of deployments."""

from collections.abc import Mapping
from typing import Any

from api.auth.principal import Caller
from api.store.index.deployments.deployments import DeploymentRow
from api.v1 import reason_links
from api.v1.timestamps import timestamp
from api.v1.waiting import waiting
from crds import conditions, entrypoints, names
from crds.github import proven_commits
from crds.reasons import ProgressReason


def item(row: DeploymentRow) -> dict[str, Any]:
    """Return a deployment as a list item.

    `error` only if it failed, `smoke_run` only if its plan has one, `is_preview` only for a preview.
    """
    fields = {
        "id": names.id_of(row.name),
        "project": row.project,
        "status": row.status,
        "message": row.message or "",
        "created_at": timestamp(row.created_at),
        "activated_at": timestamp(row.activated_at),
        **({"smoke_run": names.id_of(names.smoke_run(row.uid))} if "smoke" in row.plan else {}),
        **({"is_preview": True} if row.preview else {}),
    }
    return {**fields, "error": dict(row.error or {})} if row.status == "failed" else fields


def created(row: DeploymentRow) -> dict[str, Any]:
    """Return a deployment as the response to its creation."""
    fields = item(row)
    return {key: fields[key] for key in ("id", "project", "status", "message", "created_at")}


def detail(
    row: DeploymentRow, public_url: str, position: int | None = None, docs_url: str = ""
) -> dict[str, Any]:
    """Return a deployment with all fields; `queue_position` only while it waits for a build slot, from 1.

    `waiting` only while it is pending, or its build or smoke run waits: the reason of the condition Ready.
    `entrypoints` only if its plan has names. `cancel_requested` only until its build has ended. `stages` only
    if it has been built by pods.
    """
    fields = item(row)
    if (cause := _cause(row)) is not None:
        fields["waiting"] = waiting(cause, row.created_at, position)
    if row.cancel and not row.ended:
        fields["cancel_requested"] = True
    if named := entrypoints.named(row.plan):
        fields["entrypoints"] = list(named)
    if row.stages:
        fields["stages"] = [_stage(stage) for stage in row.stages]
    if position is not None:
        fields["queue_position"] = position
    if "error" in fields:
        fields["error"] |= reason_links.link(docs_url, fields["error"].get("reason"))
    return {
        **fields,
        "created_by": row.created_by,
        "git_sha": row.git_sha,
        "build_logs_url": f"{public_url}/v1/deployments/{fields['id']}/logs",
    }


def inputs(row: DeploymentRow) -> dict[str, Any]:
    """Return the JSON Schema of a deployment's input; any object where configuration and source tell none."""
    found = row.plan.get("inputs") or {}
    return {"schema": found.get("schema") or {"type": "object"}, "declared": bool(found.get("declared"))}


def _cause(row: DeploymentRow) -> Mapping[str, Any] | None:
    """Return the condition Ready with its time, if it says what the deployment waits for."""
    ready = conditions.find(row.conditions, conditions.READY)
    if ready is None or row.status not in ("pending", "building"):
        return None
    since = ready.get("lastTransitionTime")
    if row.status == "building":
        if ready.get("status") != "Unknown" or ready.get("reason") in tuple(ProgressReason):
            return None
        # Ready is Unknown from the creation on; the stage begins with its pod.
        since = next((stage["startedAt"] for stage in row.stages if "startedAt" in stage), since)
    return {**ready, "since": since}


def _stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    started = {"started_at": stage["startedAt"]} if "startedAt" in stage else {}
    return {**{key: stage[key] for key in ("name", "seconds") if key in stage}, **started}


def spec(body: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Deployment's spec for a validated body and its resolved source."""
    result: dict[str, Any] = {"project": body["project"], "source": dict(source)}
    for key, field in (("crew", "crew"), ("message", "message"), ("git_sha", "gitSha")):
        if key in body:
            result[field] = body[key]
    if "preview" in body:
        number = body["preview"].get("pull_request")
        result["preview"] = {} if number is None else {"pullRequest": number}
    return result


def annotations(caller: Caller, spec: Mapping[str, Any], token_key: str) -> dict[str, str]:
    """Return the annotations of a new Deployment: who created it, and whether its commit is proven."""
    result = {names.ANNOTATION_CREATED_BY: caller.principal}
    known = caller.commit
    if known is not None and spec.get("gitSha") == known.commit:
        proof = proven_commits.proof(token_key, spec, known.repository, known.commit)
        if proof is not None:
            result[names.ANNOTATION_PROVEN_COMMIT] = proof
    return result
