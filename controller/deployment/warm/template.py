"""Pod that is started before its build. Pure: equal arguments give equal pods.

It is the first pod of a build, but belongs to the Project, has no deadline and a token that only waits for a
build. The kubelet gives it the Project's credentials, so no process sends them over the network. Its label
`crewyard.dev/warm-builder` is the fingerprint of everything it is made from, also of the versions of these
Secrets: a pod with another one gets no build.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.config import ControllerConfig
from controller.deployment import build_pod_env, pod
from controller.pods import push_secret
from crds import names, pod_tokens
from crds.objects import Project

FINGERPRINT_LENGTH = 20
MAX_PROJECT_LETTERS = 36
"""Of a project's name in a pod's name, which has at most 63 letters."""
TOKEN_SLACK_SECONDS = 60


@dataclass(frozen=True)
class BuilderTemplate:
    """What the pods of a Project that wait for a build are made from."""

    project: Project
    fingerprint: str


def template(
    project: Project, secret_versions: Mapping[str, str], config: ControllerConfig
) -> BuilderTemplate:
    """Return the template with these versions of the Project's Secrets, by their names."""
    source = {
        "pod": pod.waiting(project, "", _env(project, "", "", config), config),
        "secrets": dict(secret_versions),
    }
    digest = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
    return BuilderTemplate(project, digest[:FINGERPRINT_LENGTH])


def pod_name(project: str, suffix: str) -> str:
    """Return the name of a waiting pod, which ends as that of a build's first pod; `suffix` is random."""
    return f"{names.WARM_PREFIX}{project[:MAX_PROJECT_LETTERS].rstrip('-')}-{suffix}-a1"


def build(source: BuilderTemplate, name: str, config: ControllerConfig, now: float) -> dict[str, Any]:
    """Return a pod that waits for a build; `now` in epoch seconds dates the token."""
    project = source.project
    expires = int(now) + config.timing.unschedulable + config.limits.warm_seconds + TOKEN_SLACK_SECONDS
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
