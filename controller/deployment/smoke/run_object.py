"""Run object of a smoke run. Pure. Called by `controller.deployment.smoke.decide`."""

from typing import Any

from controller.owner import reference
from crds import kinds, names
from crds.objects import Deployment


def run_object(deployment: Deployment) -> dict[str, Any]:
    """Return the smoke run of a Deployment, which deletes it with itself."""
    smoke = deployment.plan.get("smoke") or {}
    spec: dict[str, Any] = {"project": deployment.project, "deployment": deployment.name}
    spec |= {field: smoke[field] for field in ("input", "timeout") if field in smoke}
    return {
        "metadata": {
            "name": names.smoke_run(deployment.uid),
            "labels": {
                names.LABEL_PROJECT: deployment.project,
                names.LABEL_DEPLOYMENT: deployment.name,
                names.LABEL_SMOKE: "true",
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
            },
            "ownerReferences": [reference(kinds.DEPLOYMENT, deployment)],
        },
        "spec": spec,
    }
