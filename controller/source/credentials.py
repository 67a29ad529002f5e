"""Remote and credentials of a Project's source. Called by `controller.source.poller`."""

import base64

from controller.git.repository import GitProblem, Remote
from controller.pods.secret_check import SecretRefused, read_secret
from crds.objects import Project
from crds.secrets.use import SecretUse, git_reference
from kube.client import KubeClient


async def remote_of(kube: KubeClient, project: Project, use: SecretUse) -> Remote:
    """Return the remote with the current Secret. Raises GitProblem if there is none for it, `kube.errors`."""
    url, reference = str((project.git or {})["url"]), git_reference(project)
    if reference is None:
        return Remote(url)
    name = reference.name
    try:
        secret = await read_secret(kube, project, reference, use)
    except SecretRefused as problem:
        raise GitProblem("SecretNotAllowed", str(problem)) from None
    if secret is None:
        raise GitProblem(
            "SecretNotFound", f"Secret {name} does not exist; create it, or correct spec.source.git.secretRef"
        )
    data = {
        key: base64.b64decode(value).decode(errors="replace").strip()
        for key, value in (secret.get("data") or {}).items()
    }
    return Remote(
        url,
        data.get("username", ""),
        data.get("password", ""),
        data.get("bearerToken", ""),
        data.get("ca.crt", ""),
        data.get("identity", ""),
        data.get("known_hosts", ""),
    )
