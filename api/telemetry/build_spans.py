"""The spans of an ended build: the whole, and its stages one after the other. Pure. Called by `exporter`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from api.store.index.deployments.build_times import EndedBuild, ended_at
from api.store.index.deployments.deployments import DeploymentRow
from api.telemetry.span import (
    CHAIN,
    MAX_MESSAGE_CHARACTERS,
    VIEWER_KIND,
    AttributeValue,
    Span,
    cut,
    without_none,
)
from crds import names
from crds.reasons import BuildReason
from crds.runs import trace_context
from crds.times import parse_time

STAGE_OF_REASON: Mapping[str, str] = {
    BuildReason.GIT_AUTH_FAILED: "fetch",
    BuildReason.GIT_NOT_FOUND: "fetch",
    BuildReason.VERIFICATION_FAILED: "fetch",
    BuildReason.CONTEXT_TOO_LARGE: "fetch",
    BuildReason.CONTEXT_INVALID: "fetch",
    BuildReason.CONFIG_INVALID: "plan",
    BuildReason.ENTRYPOINT_NOT_FOUND: "plan",
    BuildReason.UNSUPPORTED_FRAMEWORK: "plan",
    BuildReason.DEPENDENCY_RESOLUTION: "dependencies",
    BuildReason.REGISTRY_PUSH: "assemble",
}
"""Where a build fails with a reason, as in the console; with another one it fails in its last stage."""
NO_FAILURES = (BuildReason.CANCELED, BuildReason.SUPERSEDED)
QUEUED = "queued"


def build_spans(row: DeploymentRow) -> Iterator[Span]:
    """Return the spans of an ended build, the root first; without stages if it reused an image."""
    ended = ended_at(EndedBuild(row.name, None, row.conditions))
    stages = list(_stages(row, ended))
    end = max([row.created_at, ended, *(stage[2] for stage in stages)])
    trace, root = trace_context.trace_id(None, row.uid), trace_context.span_id(row.uid, "build")
    reason = (row.error or {}).get("reason") if row.status == "failed" else None
    failure = _failure(row)
    error_type = str(reason or "_OTHER") if failure is not None else None
    identity = {
        VIEWER_KIND: CHAIN,
        "crewyard.deployment.id": names.id_of(row.name),
        "crewyard.project": row.project,
    }
    attributes: Mapping[str, AttributeValue | None] = {
        **identity,
        "crewyard.deployment.status": "failed" if row.status == "failed" else "built",
        "crewyard.deployment.reason": reason,
        "crewyard.deployment.image_reused": True if row.built and not row.stages else None,
        "crewyard.deployment.preview": True if row.preview else None,
        "vcs.ref.head.revision": row.git_sha,
        "error.type": error_type,
    }
    yield Span(
        trace, root, None, f"build {row.project}", row.created_at, end, without_none(attributes), failure
    )
    failed_stage = None if failure is None else _failed_stage([stage[0] for stage in stages], str(reason))
    for number, (name, start, stage_end) in enumerate(stages):
        failed = number == failed_stage
        yield Span(
            trace,
            trace_context.span_id(row.uid, f"stage {number} {name}"),
            root,
            name,
            start,
            stage_end,
            without_none({**identity, "error.type": error_type if failed else None}),
            failure if failed else None,
        )


def _failure(row: DeploymentRow) -> str | None:
    """Return why a build failed; None if it did not, was canceled, or made way for a newer one."""
    error = row.error or {}
    if row.status != "failed" or error.get("reason") in NO_FAILURES:
        return None
    if error.get("reason") == BuildReason.SMOKE_FAILED:
        # The message has that of the crew; the trace of the smoke run says more, if content is exported.
        return str(error["reason"])
    return cut(str(error.get("message") or row.status), MAX_MESSAGE_CHARACTERS)


def _failed_stage(names: Sequence[str], reason: str) -> int | None:
    """Return the index of the stage in which a build failed; None if it failed in none of them."""
    if reason == BuildReason.SMOKE_FAILED:
        return None
    stage = STAGE_OF_REASON.get(reason)
    if stage in names:
        return names.index(stage)
    last = len(names) - 1
    return last if last >= 0 and names[last] != QUEUED and stage is None else None


def _stages(row: DeploymentRow, end: datetime) -> Iterator[tuple[str, datetime, datetime]]:
    """Return name, start and end of each stage: they follow each other, the last one perhaps to the end."""
    start = row.created_at
    for stage in row.stages:
        name, seconds = str(stage.get("name") or "stage"), stage.get("seconds")
        if seconds is None:
            start, stage_end = _moment(stage, start), end
        else:
            stage_end = start + timedelta(seconds=max(0.0, float(seconds)))
        yield name, start, max(start, stage_end)
        start = max(start, stage_end)


def _moment(stage: Mapping[str, Any], earliest: datetime) -> datetime:
    text = stage.get("startedAt")
    return max(earliest, parse_time(str(text))) if text else earliest
