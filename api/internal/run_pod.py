"""The pod of a run that claims it. Called by the claim."""

from crds import names
from crds.kinds import POD
from crds.objects import Pod
from kube.client import KubeClient


async def find_pod(kube: KubeClient, run: str, uid: str) -> Pod | None:
    """Return the pod with this uid: the one with the run's name, or one that waited and got the run."""
    manifest = await kube.get(POD, run)
    if manifest is not None and Pod(manifest).uid == uid:
        return Pod(manifest)
    selector = f"{names.LABEL_WARM},{names.LABEL_RUN}={run}"
    pods = map(Pod, (await kube.list(POD, selector)).items)
    return next((pod for pod in pods if pod.uid == uid), None)
