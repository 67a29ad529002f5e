"""Reads the Secrets that a Project names, and checks that they allow it. Called before each use."""

from collections.abc import Iterable, Mapping
from typing import Any

from crds import kinds
from crds.objects import Project
from crds.secrets.use import (
    SecretReference,
    SecretUse,
    credential_problem,
    pull_references,
    variables_problem,
)
from kube.client import KubeClient


class SecretRefused(Exception):
    """The Project may not use the Secret; the text says why, and the next step."""


async def read_secret(
    kube: KubeClient, project: Project, reference: SecretReference, use: SecretUse
) -> Mapping[str, Any] | None:
    """Return the Secret, or None if there is none. Raises SecretRefused and `kube.errors`."""
    secret = await kube.get(kinds.SECRET, reference.name)
    if (problem := credential_problem(secret, reference, project, use)) is not None:
        raise SecretRefused(problem)
    return secret


async def find_problem(
    kube: KubeClient, project: Project, references: Iterable[SecretReference], use: SecretUse
) -> str | None:
    """Return why the Project may not use one of the Secrets; None if it may. Raises `kube.errors`."""
    try:
        for reference in references:
            await read_secret(kube, project, reference, use)
    except SecretRefused as problem:
        return str(problem)
    return None


async def find_run_problem(
    kube: KubeClient, project: Project, variables: Mapping[str, Any] | None, use: SecretUse
) -> str | None:
    """Return why the Project's runs may not get the Secret `variables`, or another one; None if they may.

    Raises `kube.errors`.
    """
    return variables_problem(variables, project, use) or await find_problem(
        kube, project, pull_references(project), use
    )
