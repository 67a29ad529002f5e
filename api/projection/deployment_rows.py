"""Current row of a Deployment whose pods append to its log. Called by pods' routes and Kaniko's logs."""

from api.store.index.deployments.deployments import DeploymentRow
from api.store.store import Store
from crds.kinds import DEPLOYMENT
from crds.objects import Deployment
from kube.client import KubeClient


async def current_row(store: Store, kube: KubeClient, name: str, uid: str) -> DeploymentRow | None:
    """Return the row of the Deployment with this uid. Without one, read the object, which may be newer."""
    row = await store.deployments.get(name)
    if row is None or row.uid != uid:
        manifest = await kube.get(DEPLOYMENT, name)
        if manifest is None:
            return None
        await store.deployments.observe(Deployment(manifest))
        row = await store.deployments.get(name)
    return row if row is not None and row.uid == uid else None
