"""With which Secret the images of a project are pushed and removed. Pure.

Called by the makers of build pods and of prune pods; nothing else of a pod ever has it.
"""

from typing import Any

from controller.config import Config
from controller.pods.env import from_secret
from crds.objects import Project

PLACE = "{project}"
"""What stands for the project's name in the installation's setting."""
ENTRY = ".dockerconfigjson"


def push_secret(project: Project, config: Config) -> str:
    """The name of the project's own, else of the installation's; empty where there is neither."""
    own = ((project.spec.get("build") or {}).get("push") or {}).get("secretRef") or {}
    return str(own.get("name") or config.registry_secret.replace(PLACE, project.name))


def registry(project: Project, config: Config) -> dict[str, Any]:
    """What a pod is told of the registry, credentials apart."""
    secret = push_secret(project, config)
    found = {"prefix": config.registry, "insecure": config.registry_insecure}
    return {**found, "secret": secret} if secret else found


def credential(project: Project, config: Config) -> list[dict[str, Any]]:
    """The variable with the credential; a Secret that is not there leaves it out, and the pod says so."""
    secret = push_secret(project, config)
    if not secret:
        return []
    return [from_secret("REGISTRY_AUTH", secret, ENTRY)]
