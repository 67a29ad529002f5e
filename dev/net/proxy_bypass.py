"""NO_PROXY entries of the cluster. Called by `dev.__main__` on behalf of everything it starts."""

from collections.abc import Mapping

from dev.kind.configuration import REGISTRY_CONTAINER
from dev.settings import CLUSTER_DOMAIN, HOST_NAME, LOOPBACK, POD_NETWORK, SERVICE_NETWORK

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_OWN_DOMAIN = HOST_NAME.partition(".")[2]
_NO_PROXY_ENTRIES = (
    LOOPBACK,
    "localhost",
    POD_NETWORK,
    SERVICE_NETWORK,
    ".svc",
    f".{CLUSTER_DOMAIN}",
    f".{_OWN_DOMAIN}",
    REGISTRY_CONTAINER,
)


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return NO_PROXY in both spellings with the cluster's addresses and names; empty without a proxy.

    Otherwise kubectl on this machine, the service's clients in images that inherit the variables, and kind's
    nodes, which get them too, would connect to the cluster through the proxy.
    """
    if not any(environment.get(name) or environment.get(name.upper()) for name in _PROXIES):
        return {}
    inherited = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    entries = [entry.strip() for entry in inherited.split(",") if entry.strip()]
    value = ",".join([*entries, *(own_entry for own_entry in _NO_PROXY_ENTRIES if own_entry not in entries)])
    return {"NO_PROXY": value, "no_proxy": value}
