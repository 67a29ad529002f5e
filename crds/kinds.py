"""The kinds we read and write, as addresses at the apiserver.

Called by `crds.kube` and by everyone who names a kind.
"""

from dataclasses import dataclass

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
        """The address of the collection, of one object, or of a subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root, "namespaces", namespace, self.plural]
        return "/".join(parts + [part for part in (name, subresource) if part])


PROJECT = Kind(names.GROUP, names.VERSION, "projects", "Project")
DEPLOYMENT = Kind(names.GROUP, names.VERSION, "deployments", "Deployment")
RUN = Kind(names.GROUP, names.VERSION, "runs", "Run")
POD = Kind("", "v1", "pods", "Pod")
SECRET = Kind("", "v1", "secrets", "Secret")
EVENT = Kind("", "v1", "events", "Event")
OWN = (PROJECT, DEPLOYMENT, RUN)
