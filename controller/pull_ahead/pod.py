"""Pull pod: lets a node pull the image of a Deployment. Pure. Called by `controller.pull_ahead.decide`.

It executes nothing of the crew, ends at once, and has no network, no token and no variables. The scheduler
places it, by affinity, so taints and the room on the node count. It has no priority class: no other pod
makes room for it.
"""

import hashlib
import json
from typing import Any

from controller.config import ControllerConfig
from controller.owner import controller_reference
from controller.pods import security
from controller.runtime.event_map import COMPONENT_PULL
from crds import kinds, names
from crds.objects import Deployment, Pod, Project

ANNOTATION_NODE = f"{names.GROUP}/node"
CONTAINER = "pull"
COMMAND = ("python3", "-I", "-S", "-c", "pass")
"""Every image of a crew has Python; with these options it imports nothing of the crew."""
DEADLINE_SECONDS = 600
REQUESTS = {"cpu": "10m", "memory": "16Mi"}
LIMITS = {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "64Mi"}


def build(project: Project, deployment: Deployment, node: str, config: ControllerConfig) -> dict[str, Any]:
    """Return the pull pod of a Deployment on a node; its name follows from both."""
    identity = json.dumps([deployment.uid, node])
    place = config.placements.for_run(project.plan)
    fields = place.spec(config.placements.pod_fields(project)[0])
    fields.pop("priorityClassName", None)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "metadata": {
            "name": f"pull-{hashlib.sha256(identity.encode()).hexdigest()[:20]}",
            "labels": {
                **place.labels,
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_PART_OF: names.MANAGED_BY,
                names.LABEL_COMPONENT: COMPONENT_PULL,
                names.LABEL_PROJECT: project.name,
                names.LABEL_DEPLOYMENT: deployment.name,
            },
            "annotations": {**place.annotations, ANNOTATION_NODE: node},
            "ownerReferences": [controller_reference(kinds.DEPLOYMENT, deployment)],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": security.restricted_pod(),
            **fields,
            "affinity": {"nodeAffinity": required},
            "containers": [
                {
                    "name": CONTAINER,
                    "image": deployment.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": list(COMMAND),
                    "resources": security.resources(None, REQUESTS, LIMITS),
                    "securityContext": security.restricted_container(),
                }
            ],
        },
    }


def node_of(pod: Pod) -> str:
    """Return the node for which a pull pod was created."""
    return pod.annotations.get(ANNOTATION_NODE, "")
