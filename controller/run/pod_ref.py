"""What is kept of a Run's pod, and which pod is the Run's. Pure.

The pod is recorded with the first status that speaks of it: `Running`, the end,
or, where nobody has claimed the run by then, that it is being started. Until
then it is found by its name and its owner. It need not be recorded sooner: what
makes a crew start at most once is the claim, not the record. Called by
`controller.run.decide`, `observe`, `status` and the admission.
"""

from collections.abc import Mapping
from typing import Any

from crds import names
from crds.objects import Pod, Run

LATE = 3.0
"""Seconds from a pod's creation (which is told in whole ones) until what keeps it from starting is shown."""
SLOW = 15.0
"""The same where nothing keeps it: on a busy node many pods start one after the other."""

BRIEF = 0.25
"""Seconds from a claim until the run is shown as Running: one that ends sooner is written once, as ended."""


def uid(run: Run) -> str | None:
    """The uid of the one pod that the Run may have: the recorded one, or the one it was given to."""
    found = (run.pod or {}).get("uid") or (run.claim or {}).get("podUid")
    return str(found) if found else None


def ours(run: Run, pod: Pod) -> bool:
    """Whether it is the Run's pod: the one that is recorded or claimed, else the one that the Run owns."""
    known = uid(run)
    return pod.uid == known if known else run.uid in pod.owner_uids


def of(run: Run, pod: Pod | None) -> Mapping[str, Any]:
    """The fields of a status that a pod settles for ever, as far as they are not there."""
    found: dict[str, Any] = {}
    known = uid(run)
    if run.pod is None and (known or pod is not None):
        found["pod"] = {"name": run.name, "uid": known or (pod.uid if pod else "")}
    if pod is not None:
        # What it was made for counts, even if another deployment has become active since.
        for field, label in (("project", names.LABEL_PROJECT), ("deployment", names.LABEL_DEPLOYMENT)):
            if label in pod.labels and not run.status.get(field):
                found[field] = pod.labels[label]
    return found
