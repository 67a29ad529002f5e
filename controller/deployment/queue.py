"""Whether a Deployment may begin its build. Pure; called by `controller.deployment.reconcile`."""

from collections.abc import Iterable

from controller.config import Config
from crds.objects import Deployment


def building(deployment: Deployment) -> bool:
    """Whether it takes one of the places for builds."""
    begun = bool(deployment.status.get("buildPod"))
    return begun and not deployment.failed and not deployment.built and not deployment.deleting


def waits(deployment: Deployment, others: Iterable[Deployment], config: Config) -> str:
    """Why a Deployment that has not begun must wait, for people; empty where it may begin."""
    busy = [other for other in others if building(other)]
    if sum(other.project == deployment.project for other in busy) >= config.max_builds_per_project:
        return f"Waiting for another build of project {deployment.project}."
    if len(busy) >= config.max_builds:
        return f"Waiting for one of the installation's {config.max_builds} places for builds."
    return ""
