"""Reads the Secrets that a Project names, and checks that they allow it. Called before each use."""

from collections.abc import Iterable

from crds import kinds
from crds.objects import Project
from crds.secrets.use import SecretReference, SecretUse, credential_problem
from kube.client import KubeClient


async def find_problem(
    kube: KubeClient, project: Project, references: Iterable[SecretReference], use: SecretUse
) -> str | None:
    """Return why the Project may not use one of the Secrets; None if it may. Raises `kube.errors`."""
    for reference in references:
        secret = await kube.get(kinds.SECRET, reference.name)
        problem = credential_problem(secret, reference, project, use)
        if problem:
            return problem
    return None
