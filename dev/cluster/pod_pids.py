"""How many processes a pod may have on each node: all that stops a crew which does nothing but start them.

A setting of the kubelets (`podPidsLimit`), which no pod and no namespace can make.
Shown by `status`, looked at by `up`.
"""

from typing import Any

from dev.cluster.kube_client import HttpKubeApi, KubeApiError

MAX_POD_PIDS_LIMIT = 32768
"""Beyond that it is none: a node has no more process ids than that by default."""


def parse_configz(configz: dict[str, Any]) -> int | None:
    """The limit in what a kubelet says of itself; None where it has none."""
    limit = configz.get("kubeletconfig", {}).get("podPidsLimit", -1)
    return limit if isinstance(limit, int) and 0 < limit <= MAX_POD_PIDS_LIMIT else None


def limits(kube: HttpKubeApi) -> dict[str, int | None]:
    """The limit of each node. Raises KubeError, also where one may not ask the kubelets."""
    names = [node["metadata"]["name"] for node in kube.call("GET", "/api/v1/nodes")["items"]]
    return {name: parse_configz(kube.call("GET", f"/api/v1/nodes/{name}/proxy/configz")) for name in names}


def problem(node_limits: dict[str, int | None]) -> str | None:
    """What is wrong with the nodes' limits, and what to do; None where nothing is. Pure."""
    unlimited = sorted(name for name, limit in node_limits.items() if limit is None)
    if not unlimited:
        return None
    return (
        f"A crew may fill a node with processes: {', '.join(unlimited)} has no podPidsLimit. "
        "Set it in the kubelet's configuration; 1024 is plenty."
    )


def status_line(kube: HttpKubeApi) -> str:
    """For people, in the manner of `status`."""
    try:
        node_limits = limits(kube)
    except KubeApiError as error:
        return f"{'processes of a pod':24} unknown: {error}"
    text = ", ".join(f"{limit or 'any number'} ({name})" for name, limit in sorted(node_limits.items()))
    return f"{'processes of a pod':24} at most {text}"
