"""The kinds we read and write, as addresses at the apiserver.

Called by `kube.client` and by everyone who names a kind.
"""

from dataclasses import dataclass
from urllib.parse import quote

from crds import names


@dataclass(frozen=True)
class Kind:
    """A namespaced kind: `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str | None = None, subresource: str | None = None) -> str:
        """The address of the collection, of one object, or of a subresource.

        A name that somebody wrote into a field (a Secret's) stays one part of it, whatever is in it.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root, "namespaces", namespace, self.plural]
        if name:
            # Dots alone would be steps on the way; with a hyphen behind they are a name that no object has.
            parts.append(quote(name, safe=":") if name.strip(".") else f"{name}-")
        return "/".join([*parts, subresource] if subresource else parts)


PROJECT = Kind(names.GROUP, names.VERSION, "projects", "Project")
DEPLOYMENT = Kind(names.GROUP, names.VERSION, "deployments", "Deployment")
RUN = Kind(names.GROUP, names.VERSION, "runs", "Run")
POD = Kind("", "v1", "pods", "Pod")
SECRET = Kind("", "v1", "secrets", "Secret")
EVENT = Kind("", "v1", "events", "Event")
OWN = (PROJECT, DEPLOYMENT, RUN)
