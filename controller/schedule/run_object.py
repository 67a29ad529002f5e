"""Run object of a tick: its name follows from project, schedule and tick, so each tick has at most one. Pure.

Called by `controller.schedule.decide` and `controller.schedule.reconcile`.
"""

import base64
import hashlib
import json
from datetime import datetime
from typing import Any

from controller.owner import reference
from crds import kinds, names
from crds.objects import Project
from crds.schedules.schedule import Schedule
from crds.times import format_second

HASH_LENGTH = 10


def run_name(project_uid: str, schedule: str, tick: datetime) -> str:
    """Return `run-<schedule>-<tick in UTC>-<hash>`, at most 48 characters; the hash includes the project."""
    moment = tick.strftime("%Y%m%d%H%M")
    parts = json.dumps([project_uid, schedule, moment]).encode()
    suffix = base64.b32encode(hashlib.sha256(parts).digest()).decode().lower()[:HASH_LENGTH]
    return f"{names.RUN_PREFIX}{schedule}-{moment}-{suffix}"


def run_object(project: Project, schedule: Schedule, tick: datetime) -> dict[str, Any]:
    """Return the Run of a tick. It executes the Deployment that is active when it is accepted."""
    spec: dict[str, Any] = {"project": project.name}
    for field in ("input", "entrypoint"):
        if field in schedule.raw:
            spec[field] = schedule.raw[field]
    return {
        "metadata": {
            "name": run_name(project.uid, schedule.name, tick),
            "labels": {
                **schedule.labels,
                names.LABEL_PROJECT: project.name,
                names.LABEL_SCHEDULE: schedule.name,
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
            },
            "annotations": {names.ANNOTATION_SCHEDULED_AT: format_second(tick)},
            "ownerReferences": [reference(kinds.PROJECT, project)],
        },
        "spec": spec,
    }
