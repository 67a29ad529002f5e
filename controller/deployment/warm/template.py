"""Pod that is started before its build. Pure: equal arguments give equal pods.

It is the first pod of a build, but belongs to the Project, has no deadline and a token that only waits for a
build. The kubelet gives it the Project's credentials, so no process sends them over the network. Its label
`crewyard.dev/warm-builder` is the fingerprint of everything it is made from, also of the versions of these
Secrets: a pod with another one gets no build.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.config import ControllerConfig
from controller.deployment import build_pod_env, pod
from controller.pods import push_secret, waiting
from crds import names, pod_tokens
from crds.objects import Project


@dataclass(frozen=True)
class BuilderTemplate:
    """What the pods of a Project that wait for a build are made from."""

    project: Project
    fingerprint: str


def template(
    project: Project, secret_versions: Mapping[str, Any], config: ControllerConfig
) -> BuilderTemplate:
    """Return the template with these versions of the Project's Secrets, by their names."""
    source = {
        "pod": pod.waiting(project, "", _env(project, "", "", config), config),
        "secrets": dict(secret_versions),
    }
    return BuilderTemplate(project, waiting.fingerprint(source))


def pod_name(project: str, suffix: str) -> str:
    """Return the name of a waiting pod, which ends as that of a build's first pod; `suffix` is random."""
    return f"{waiting.pod_name(project, suffix)}-a1"


def build(source: BuilderTemplate, name: str, config: ControllerConfig, now: float) -> dict[str, Any]:
    """Return a pod that waits for a build; `now` in epoch seconds dates the token."""
    project = source.project
    expires = waiting.token_expiry(config, now)
    token = pod_tokens.mint(config.token_key, "builder", config.namespace, name, project.uid, expires)
    body = pod.waiting(project, name, _env(project, name, token, config), config)
    body["metadata"]["labels"][names.LABEL_WARM_BUILDER] = source.fingerprint
    return body


def _env(project: Project, name: str, token: str, config: ControllerConfig) -> list[dict[str, Any]]:
    return [
        *build_pod_env.of_pod(config),
        {"name": "CREWYARD_BUILDER", "value": name},
        {"name": "CREWYARD_TOKEN", "value": token},
        *build_pod_env.own_git(project),
        *build_pod_env.signers(project),
        *push_secret.credential(project, config),
    ]
