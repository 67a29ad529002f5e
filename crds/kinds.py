"""The kinds that Crewyard reads and writes, with their apiserver paths.

Called by `kube.client` and its callers.
"""

from dataclasses import dataclass
from urllib.parse import quote

from crds import names


@dataclass(frozen=True)
class Kind:
    """A namespaced kind; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection, of one object, or of a subresource.

        An untrusted name (of a Secret in a spec, for example) always stays one path segment.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root, "namespaces", namespace, self.plural]
        if name:
            # Segments of dots alone would change the path; with a hyphen they are a name that no object has.
            parts.append(quote(name, safe=":") if name.strip(".") else f"{name}-")
        return "/".join([*parts, subresource] if subresource else parts)


PROJECT = Kind(names.GROUP, names.VERSION, "projects", "Project")
DEPLOYMENT = Kind(names.GROUP, names.VERSION, "deployments", "Deployment")
RUN = Kind(names.GROUP, names.VERSION, "runs", "Run")
POD = Kind("", "v1", "pods", "Pod")
SECRET = Kind("", "v1", "secrets", "Secret")
EVENT = Kind("", "v1", "events", "Event")
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
OWN_KINDS = (PROJECT, DEPLOYMENT, RUN)
