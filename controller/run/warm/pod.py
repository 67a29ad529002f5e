"""Pod that is started before its run. Pure: equal arguments give equal pods.

It is the pod of a run, but belongs to the Project, has no deadline and a token that only waits for a run.
Its label `crewyard.dev/warm` is the fingerprint of everything it is made from, also of the version of the
Secret with the project's variables: a pod with another one gets no run. Called by the reconciler of waiting
pods and by the admission.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.config import ControllerConfig
from controller.owner import controller_reference
from controller.pods import waiting
from controller.run import pod, resolve
from crds import entrypoints, kinds, names, pod_tokens
from crds.objects import Deployment, Project


@dataclass(frozen=True)
class WarmTemplate:
    """What the waiting pods of a project are made from."""

    project: Project
    deployment: Deployment
    variables: frozenset[str]
    fingerprint: str


def template(
    project: Project, deployment: Deployment, secret: Mapping[str, Any] | None, config: ControllerConfig
) -> WarmTemplate:
    """Return the template of the active deployment with the variables of this version of the Secret."""
    variables = resolve.variable_names(secret)
    source = {
        "pod": pod.template(project, deployment, variables, config, _env(deployment, "", "")),
        "deployment": [deployment.name, deployment.uid],
        "secret": waiting.secret_version(secret),
    }
    return WarmTemplate(project, deployment, variables, waiting.fingerprint(source))


def build(source: WarmTemplate, name: str, config: ControllerConfig, now: float) -> dict[str, Any]:
    """Return a pod that waits for a run; `now` in epoch seconds dates the token."""
    project, deployment = source.project, source.deployment
    expires = waiting.token_expiry(config, now)
    token = pod_tokens.mint(config.token_key, "warm", config.namespace, name, project.uid, expires)
    body = pod.template(project, deployment, source.variables, config, _env(deployment, name, token))
    metadata = body["metadata"]
    metadata["name"] = name
    metadata["labels"][names.LABEL_WARM] = source.fingerprint
    # `kubectl drain` evicts only pods that a controller creates again.
    metadata["ownerReferences"] = [controller_reference(kinds.PROJECT, project)]
    return body


def _env(deployment: Deployment, name: str, token: str) -> list[dict[str, str]]:
    values = {
        "CREWYARD_WARM": name,
        "CREWYARD_TOKEN": token,
        "CREWYARD_ENTRYPOINT": entrypoints.target(None, deployment.plan) or "",
        "CREWYARD_FRAMEWORK": str(deployment.plan.get("framework") or ""),
    }
    return [{"name": variable, "value": value} for variable, value in values.items()]
