"""Per-pod process limit of each node (`podPidsLimit`): the only protection against a fork bomb in a crew.

It is a kubelet setting; no pod or namespace can set it. `status` shows it, `up` checks it.
"""

from typing import Any

from dev.cluster.kube_client import HttpKubeApi, KubeApiError

MAX_POD_PIDS_LIMIT = 32768
"""A higher limit has no effect: by default a node has no more process ids than that."""


def parse_configz(configz: dict[str, Any]) -> int | None:
    """Return the limit in a kubelet's configz document, or None if there is none."""
    limit = configz.get("kubeletconfig", {}).get("podPidsLimit", -1)
    return limit if isinstance(limit, int) and 0 < limit <= MAX_POD_PIDS_LIMIT else None


def limits(kube: HttpKubeApi) -> dict[str, int | None]:
    """Return the limit per node. Raises KubeApiError, also if access to the kubelets is forbidden."""
    names = [node["metadata"]["name"] for node in kube.call("GET", "/api/v1/nodes")["items"]]
    return {name: parse_configz(kube.call("GET", f"/api/v1/nodes/{name}/proxy/configz")) for name in names}


def problem(node_limits: dict[str, int | None]) -> str | None:
    """Return what is wrong with the nodes' limits and how to fix it; None if all have one. Pure."""
    unlimited = sorted(name for name, limit in node_limits.items() if limit is None)
    if not unlimited:
        return None
    return (
        f"A crew can exhaust the process ids of a node: {', '.join(unlimited)} has no podPidsLimit. "
        "Set it in the kubelet's configuration; 1024 is enough."
    )


def status_line(kube: HttpKubeApi) -> str:
    """Return the line of `status`."""
    try:
        node_limits = limits(kube)
    except KubeApiError as error:
        return f"{'processes per pod':24} unknown: {error}"
    text = ", ".join(f"{limit or 'unlimited'} ({name})" for name, limit in sorted(node_limits.items()))
    return f"{'processes per pod':24} at most {text}"
