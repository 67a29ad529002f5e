"""How many processes a pod may have on each node: all that stops a crew which does nothing but start them.

A setting of the kubelets (`podPidsLimit`), which no pod and no namespace can make.
Shown by `status`, looked at by `up`.
"""

from typing import Any

from dev.cluster.kube_client import Kube, KubeError

MOST = 32768
"""Beyond that it is none: a node has no more process ids than that by default."""


def of_configuration(answer: dict[str, Any]) -> int | None:
    """The limit in what a kubelet says of itself; None where it has none."""
    limit = answer.get("kubeletconfig", {}).get("podPidsLimit", -1)
    return limit if isinstance(limit, int) and 0 < limit <= MOST else None


def limits(kube: Kube) -> dict[str, int | None]:
    """The limit of each node. Raises KubeError, also where one may not ask the kubelets."""
    names = [node["metadata"]["name"] for node in kube.call("GET", "/api/v1/nodes")["items"]]
    return {name: of_configuration(kube.call("GET", f"/api/v1/nodes/{name}/proxy/configz")) for name in names}


def problem(found: dict[str, int | None]) -> str | None:
    """What is wrong with the nodes' limits, and what to do; None where nothing is. Pure."""
    without = sorted(name for name, limit in found.items() if limit is None)
    if not without:
        return None
    return (
        f"A crew may fill a node with processes: {', '.join(without)} has no podPidsLimit. "
        "Set it in the kubelet's configuration; 1024 is plenty."
    )


def line(kube: Kube) -> str:
    """For people, in the manner of `status`."""
    try:
        found = limits(kube)
    except KubeError as error:
        return f"{'processes of a pod':24} unknown: {error}"
    told = ", ".join(f"{limit or 'any number'} ({name})" for name, limit in sorted(found.items()))
    return f"{'processes of a pod':24} at most {told}"
