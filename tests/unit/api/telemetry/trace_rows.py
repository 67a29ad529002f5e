"""Rows of ended runs and builds, for tests of their spans."""

from datetime import UTC, datetime, timedelta
from typing import Any

from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.runs.runs import RunDetail
from crds.times import format_time

CREATED = datetime(2026, 11, 21, 10, 0, 0, 250000, UTC)


def at(seconds: float) -> datetime:
    """Return a time after the creation."""
    return CREATED + timedelta(seconds=seconds)


def stamp(seconds: float, **data: Any) -> dict[str, Any]:
    """Return the data of an event at a time after the creation."""
    return {"run_id": "run_a", "timestamp": format_time(at(seconds)), **data}


def run_row(**fields: Any) -> RunDetail:
    """Return a run that took from 5 s to 65 s after its creation."""
    values: dict[str, Any] = {
        "name": "run-a",
        "ord": 1,
        "project": "demo",
        "deployment": "dep-a",
        "status": "succeeded",
        "created_at": CREATED,
        "started_at": at(5),
        "completed_at": at(65).replace(microsecond=0),
        "duration_ms": 60_000,
        "labels": {"team": "tides"},
        "uid": "uid-1",
        "created_by": None,
        "input": {"topic": "tides"},
        "entrypoint": None,
        "timeout": None,
        "config": None,
        "context": None,
        "rerun_of": None,
        "traceparent": None,
        "admitted_at": at(2).replace(microsecond=0),
        "cancel": False,
        "output": {"report": "Two a day."},
        "error": None,
        "waiting": None,
        "prompt_tokens": None,
        "completion_tokens": None,
        "artifact_bytes": None,
        "model_tokens": None,
    }
    return RunDetail(**{**values, **fields})


def build_row(**fields: Any) -> DeploymentRow:
    """Return a deployment whose build took 90 s."""
    built = {"type": "Built", "status": "True", "lastTransitionTime": format_time(at(90))}
    values: dict[str, Any] = {
        "name": "dep-a",
        "uid": "uid-d",
        "ord": 1,
        "project": "demo",
        "status": "active",
        "created_at": CREATED,
        "created_by": None,
        "activated_at": None,
        "built": True,
        "preview": False,
        "activation": 0,
        "error": None,
        "spec": {"gitSha": "ab" * 20},
        "plan": {},
        "conditions": (built,),
        "stages": (
            {"name": "queued", "seconds": 10},
            {"name": "fetch", "seconds": 1.5},
            {"name": "plan", "seconds": 0.5},
            {"name": "dependencies", "seconds": 60},
            {"name": "assemble", "seconds": 12},
        ),
    }
    return DeploymentRow(**{**values, **fields})
