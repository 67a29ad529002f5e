"""Ownership of the containers: Docker has one cluster of this name, but there can be many state directories.

A label on the registry's volume stores the owner's path. The volume is created before the first container and
removed after the last, so even an incomplete cluster has an owner. `conflict` is pure.
"""

from pathlib import Path

from dev.errors import DevClusterError
from dev.kind import configuration, docker

_REMOVE_COMMANDS = (
    f"docker rm --force --volumes {configuration.REGISTRY_CONTAINER} "
    f"$(docker ps --all --quiet --filter label={configuration.CLUSTER_LABEL}={configuration.CLUSTER}); "
    f"docker volume rm {configuration.VOLUME}"
)


def conflict(volume: bool, owner: str, node: bool, has_kubeconfig: bool, state: Path) -> str | None:
    """Return why a state directory may not change the existing containers; None if it may.

    `volume` tells whether the registry's volume exists, `owner` is its label (empty without one), `node`
    tells whether the node's container exists, `has_kubeconfig` whether this directory has that cluster's
    kubeconfig.
    """
    if owner == str(state):
        return None
    if owner:
        return (
            f"The kind cluster {configuration.CLUSTER} belongs to the state directory {owner}, not to "
            f"{state}: Docker can have only one of that name. Use that one (CREWYARD_STATE={owner}), or "
            f"remove it first: CREWYARD_STATE={owner} make down PURGE=1. If that directory no longer exists: "
            f"{_REMOVE_COMMANDS}"
        )
    # A cluster from before ownership labels belongs to the directory with its kubeconfig.
    if not volume and (has_kubeconfig or not node):
        return None
    existing = f"container {configuration.NODE}" if node else f"volume {configuration.VOLUME}"
    return (
        f"Docker has a {existing} without a known owner, so it stays unchanged. "
        f"If it is not needed, remove it: {_REMOVE_COMMANDS}"
    )


def check(state: Path, has_kubeconfig: bool) -> None:
    """Raise DevClusterError if another state directory owns the containers."""
    volume = docker.inspect("volume", configuration.VOLUME)
    owner = ((volume[0].get("Labels") or {}) if volume else {}).get(configuration.OWNER, "")
    node = docker.inspect("container", configuration.NODE) is not None
    reason = conflict(volume is not None, str(owner), node, has_kubeconfig, state)
    if reason:
        raise DevClusterError(reason)


def claim(state: Path, has_kubeconfig: bool) -> None:
    """Make `state` the owner if there is none. Raises DevClusterError if there is another."""
    check(state, has_kubeconfig)
    # Docker does not change an existing volume: of two concurrent claims one wins.
    docker.run("volume", "create", f"--label={configuration.OWNER}={state}", configuration.VOLUME)
    check(state, has_kubeconfig)


def release() -> None:
    """Remove the owner label with the registry's volume. The containers must be removed first."""
    if docker.inspect("volume", configuration.VOLUME) is not None:
        docker.run("volume", "rm", configuration.VOLUME)
