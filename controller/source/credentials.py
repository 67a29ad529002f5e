"""Remote and credentials of a Project's source. Called by `controller.source.poller`."""

import base64

from controller.git.repository import GitProblem, Remote
from crds import kinds
from crds.objects import Project
from kube.client import KubeClient


async def remote_of(kube: KubeClient, project: Project) -> Remote:
    """Return the remote with the current Secret. Raises GitProblem if it is missing, and `kube.errors`."""
    git = project.git or {}
    url, name = str(git["url"]), (git.get("secretRef") or {}).get("name")
    if not name:
        return Remote(url)
    secret = await kube.get(kinds.SECRET, name)
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
