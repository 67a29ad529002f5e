"""Reference from a Run to its pod. Pure.

The first status that concerns the pod records it: `Running`, the final status, or, if the run
is unclaimed by then, `Starting`. Until then the pod is found by name and owner. An earlier record
is not needed: the claim, not the record, makes a crew start at most once. Called by
`controller.run.decide`, `observe`, `status` and the admission.
"""

from collections.abc import Mapping
from typing import Any

from crds import names
from crds.objects import Pod, Run

PROBLEM_DELAY_SECONDS = 3.0
"""Delay from a pod's creation (in whole seconds) until the status shows a startup problem."""
STARTING_DELAY_SECONDS = 15.0
"""The same without a problem: on a busy node many pods start one after the other."""

RUNNING_DELAY_SECONDS = 0.25
"""Delay from a claim until the status shows Running: a run that ends sooner is written only once."""


def pod_uid(run: Run) -> str | None:
    """Return the uid of the only pod that the Run may have: the recorded or the claiming one."""
    found = (run.pod or {}).get("uid") or (run.claim or {}).get("podUid")
    return str(found) if found else None


def is_pod_of(run: Run, pod: Pod) -> bool:
    """Return whether the pod is the Run's: the recorded or claiming one, else one that the Run owns."""
    known_uid = pod_uid(run)
    return pod.uid == known_uid if known_uid else run.uid in pod.owner_uids


def status_fields(run: Run, pod: Pod | None) -> Mapping[str, Any]:
    """Return the unset status fields that a pod fixes permanently."""
    fields: dict[str, Any] = {}
    known_uid = pod_uid(run)
    if run.pod is None and (known_uid or pod is not None):
        fields["pod"] = {"name": pod.name if pod else run.name, "uid": known_uid or (pod.uid if pod else "")}
    if pod is not None:
        # The pod's labels count, even if another deployment has become active since.
        for field, label in (("project", names.LABEL_PROJECT), ("deployment", names.LABEL_DEPLOYMENT)):
            if label in pod.labels and not run.status.get(field):
                fields[field] = pod.labels[label]
    return fields
