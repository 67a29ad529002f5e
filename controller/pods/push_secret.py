"""Registry Secret that pushes and deletes the images of a project. Pure.

Called by the builders of build pods and prune pods; no other container gets it.
"""

from typing import Any

from controller.config import ControllerConfig
from controller.pods.env import from_secret
from crds.objects import Project

PROJECT_PLACEHOLDER = "{project}"
"""Placeholder of the project's name in the setting."""
DOCKER_CONFIG_KEY = ".dockerconfigjson"


def push_secret(project: Project, config: ControllerConfig) -> str:
    """Return the Secret name of the project, else of the installation; empty if neither is set."""
    own = ((project.spec.get("build") or {}).get("push") or {}).get("secretRef") or {}
    return str(own.get("name") or config.registry_secret.replace(PROJECT_PLACEHOLDER, project.name))


def registry(project: Project, config: ControllerConfig) -> dict[str, Any]:
    """Return the registry settings for a pod, without credentials."""
    secret = push_secret(project, config)
    settings = {"prefix": config.registry, "insecure": config.registry_insecure}
    return {**settings, "secret": secret} if secret else settings


def credential(project: Project, config: ControllerConfig) -> list[dict[str, Any]]:
    """Return the credential variable; unset if the Secret is missing, which the pod reports."""
    secret = push_secret(project, config)
    if not secret:
        return []
    return [from_secret("REGISTRY_AUTH", secret, DOCKER_CONFIG_KEY)]
