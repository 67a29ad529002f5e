"""The remote that a Project follows, with what opens it. Called by `controller.source.poller`."""

import base64

from controller.git.repository import GitProblem, Remote
from crds import kinds
from crds.objects import Project
from kube.client import Kube


async def remote_of(kube: Kube, project: Project) -> Remote:
    """The remote, with the Secret as it is now. Raises GitProblem where it is missing, and `kube.errors`."""
    git = project.git or {}
    url, name = str(git["url"]), (git.get("secretRef") or {}).get("name")
    if not name:
        return Remote(url)
    secret = await kube.get(kinds.SECRET, name)
    if secret is None:
        raise GitProblem("SecretNotFound", f"there is no Secret {name}; create it, or correct secretRef")
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
