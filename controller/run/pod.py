"""The pod of a Run. Pure: the same arguments give the same pod.

One container and no volume: a pod with any volume starts 0.3 s later. Called by
the admission.
"""

from typing import Any

from controller.config import Config
from controller.pods import security
from controller.pods.placement import merged
from controller.run.outcome import CONTAINER
from crds import names, pod_tokens
from crds.limits import FLUSH, GRACE, run_timeout
from crds.objects import Deployment, Project, Run

COMMAND = ("python3", "-I", "-S", "/opt/crewyard/runner")
REQUESTS = {"cpu": "50m", "memory": "128Mi"}
LIMITS = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "3Gi"}
SLACK = 60


def labels(run: Run, project: str, deployment: str) -> dict[str, str]:
    """The labels by which watch, admission and people find the pod."""
    return {
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
        names.LABEL_PART_OF: names.MANAGED_BY,
        names.LABEL_COMPONENT: names.COMPONENT_RUN,
        names.LABEL_PROJECT: project,
        names.LABEL_DEPLOYMENT: deployment,
        names.LABEL_RUN: run.name,
    }


def deadline(run: Run, deployment: Deployment | None, project: Project | None, config: Config) -> int:
    """Seconds after which the kubelet ends the pod, should the runner fail to end itself."""
    return config.timing.start_timeout + run_timeout(run, deployment, project, config.limits) + GRACE + FLUSH


def build(
    run: Run,
    project: Project,
    deployment: Deployment,
    variables: frozenset[str],
    config: Config,
    now: float,
) -> dict[str, Any]:
    """The pod of a Run that is admitted.

    `variables` are the names in the project's Secret, which win over the Project's
    plain ones; `now` in epoch seconds dates the token.
    """
    extra = project.spec.get("pod") or {}
    place = config.pods.of_run(project.plan)
    size = merged(place.resources, (project.spec.get("run") or {}).get("resources") or {})
    seconds = deadline(run, deployment, project, config)
    expires = int(now) + config.timing.unschedulable + seconds + SLACK
    token = pod_tokens.mint(config.token_key, "run", config.namespace, run.name, run.uid, expires)
    plain = [
        {"name": entry["name"], "value": entry["value"]}
        for entry in extra.get("env") or ()
        if entry["name"] not in variables
    ]
    env = [
        *plain,
        {"name": "CREWYARD_INTERNAL_URL", "value": config.internal_url},
        {"name": "CREWYARD_RUN", "value": run.name},
        {"name": "CREWYARD_RUN_UID", "value": run.uid},
        {"name": "CREWYARD_TOKEN", "value": token},
        {"name": "CREWYARD_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "CREWYARD_START_TIMEOUT", "value": str(config.timing.start_timeout)},
        # In bytes, by the kubelet's arithmetic.
        {
            "name": "CREWYARD_STORAGE_LIMIT",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.ephemeral-storage", "divisor": "1"}},
        },
        {"name": "HOME", "value": "/home/crew"},
    ]
    if variables:
        # The runner hides what these say in the crew's words.
        env.append({"name": "CREWYARD_SECRETS", "value": ",".join(sorted(variables))})
    container = {
        "name": CONTAINER,
        "image": deployment.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(COMMAND),
        "workingDir": "/app",
        "env": env,
        "envFrom": [{"secretRef": {"name": names.env_secret(project.name), "optional": True}}],
        "resources": security.resources(size, REQUESTS, LIMITS),
        "securityContext": security.restricted_container(),
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": seconds,
        "terminationGracePeriodSeconds": GRACE + FLUSH,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.restricted_pod(),
        "containers": [container],
        **place.spec(extra),
    }
    return {
        "metadata": {
            "name": run.name,
            "labels": labels(run, project.name, deployment.name),
            "annotations": {"kubectl.kubernetes.io/default-container": CONTAINER},
            "ownerReferences": [owner_reference(run)],
        },
        "spec": spec,
    }


def owner_reference(run: Run) -> dict[str, Any]:
    """The Run as the pod's owner, with which it goes."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Run",
        "name": run.name,
        "uid": run.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
