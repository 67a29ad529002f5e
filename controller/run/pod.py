"""Pod of a Run. Pure: equal arguments give equal pods.

One container and no volume: a pod with any volume starts 0.3 s later. Called by
the admission and for pods that are started before their run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.config import ControllerConfig
from controller.owner import controller_reference
from controller.pods import security
from controller.pods.env import all_from_secret, usable
from controller.pods.placement import NOT_DISRUPTED, merge_resources
from controller.run import startup
from controller.run.outcome import CONTAINER
from crds import kinds, names, pod_tokens
from crds.limits import FLUSH_SECONDS, GRACE_SECONDS, ask_timeout, run_timeout
from crds.objects import Deployment, Pod, Project, Run

COMMAND = ("python3", "-I", "-S", "/opt/crewyard/runner")
REQUESTS = {"cpu": "50m", "memory": "128Mi"}
TOKEN_SLACK_SECONDS = 60
ANNOTATION_ASK = f"{names.GROUP}/ask-seconds"
"""On a pod, read by `answer_seconds`."""


def answer_seconds(pod: Pod) -> int:
    """Return the seconds of a pod's activeDeadlineSeconds that only a run has which asks a person."""
    text = pod.annotations.get(ANNOTATION_ASK, "")
    return int(text) if text.isdecimal() else 0


def deadline(
    run: Run, deployment: Deployment | None, project: Project | None, config: ControllerConfig
) -> int:
    """Return seconds after which the kubelet stops the pod if the runner does not exit."""
    return (
        startup.max_seconds(config.timing)
        + run_timeout(run, deployment, project, config.limits_of(project))
        + GRACE_SECONDS
        + FLUSH_SECONDS
    )


def build(
    run: Run,
    project: Project,
    deployment: Deployment,
    variables: frozenset[str],
    config: ControllerConfig,
    now: float,
) -> dict[str, Any]:
    """Return the pod of an admitted Run.

    `variables` are the keys of the project's Secret, which override the Project's plain
    variables; `now` in epoch seconds dates the token.
    """
    seconds = deadline(run, deployment, project, config) + ask_timeout(project, config.limits_of(project))
    expires = int(now) + config.timing.unschedulable + seconds + TOKEN_SLACK_SECONDS
    token = pod_tokens.mint(config.token_key, "run", config.namespace, run.name, run.uid, expires)
    env = [
        {"name": "CREWYARD_RUN", "value": run.name},
        {"name": "CREWYARD_RUN_UID", "value": run.uid},
        {"name": "CREWYARD_TOKEN", "value": token},
    ]
    body = template(project, deployment, variables, config, env)
    metadata = body["metadata"]
    metadata["name"] = run.name
    metadata["labels"][names.LABEL_RUN] = run.name
    metadata["annotations"] = {**NOT_DISRUPTED, **metadata["annotations"]}
    metadata["ownerReferences"] = [controller_reference(kinds.RUN, run)]
    body["spec"]["activeDeadlineSeconds"] = seconds
    return body


def template(
    project: Project,
    deployment: Deployment,
    variables: frozenset[str],
    config: ControllerConfig,
    env: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return what all pods of a deployment's runs have in common, with `env` in addition."""
    extra, _ = config.placements.pod_fields(project)
    place = config.placements.for_run(project.plan)
    size = merge_resources(place.resources, config.placements.run_resources(project)[0])
    plain = [
        {"name": entry["name"], "value": entry["value"]}
        for entry in extra.get("env") or ()
        if entry["name"] not in variables
    ]
    secret_env, env_from = all_from_secret(names.env_secret(project.name), variables)
    env = [
        # First: a plain variable may refer to one of the Secret.
        *secret_env,
        *plain,
        *config.api_address.run_env(),
        *env,
        {"name": "CREWYARD_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "CREWYARD_START_TIMEOUT", "value": str(config.timing.start_timeout)},
        # In bytes, computed by the kubelet.
        {
            "name": "CREWYARD_STORAGE_LIMIT",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.ephemeral-storage", "divisor": "1"}},
        },
        {"name": "HOME", "value": "/home/crew"},
    ]
    if masked := usable(variables):
        # The runner redacts the values of these variables in the crew's output.
        env.append({"name": "CREWYARD_SECRETS", "value": ",".join(masked)})
    container = {
        "name": CONTAINER,
        "image": deployment.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(COMMAND),
        "workingDir": "/app",
        "env": env,
        **env_from,
        "resources": security.resources(size, REQUESTS, place.run_limits()),
        "securityContext": security.restricted_container(),
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS + FLUSH_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.restricted_pod(),
        "containers": [container],
        **place.spec(extra),
    }
    annotations = {
        "kubectl.kubernetes.io/default-container": CONTAINER,
        ANNOTATION_ASK: str(ask_timeout(project, config.limits_of(project))),
        **place.annotations,
    }
    labels = {
        **place.labels,
        # By which watch, admission and kubectl users find the pod.
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
        names.LABEL_PART_OF: names.MANAGED_BY,
        names.LABEL_COMPONENT: names.COMPONENT_RUN,
        names.LABEL_PROJECT: project.name,
        names.LABEL_DEPLOYMENT: deployment.name,
    }
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
