"""Which state directory the containers belong to: Docker has one cluster of our name, checkouts are many.

The registry's volume carries the owner's path as a label. It is made before
the first container and removed after the last, so that even a cluster that
was never finished has an owner. `refusal` is pure.
"""

from pathlib import Path

from dev.errors import DevClusterError
from dev.kind import configuration, docker

_REMOVE_COMMANDS = (
    f"docker rm --force --volumes {configuration.NODE} {configuration.REGISTRY_CONTAINER}; "
    f"docker volume rm {configuration.VOLUME}"
)


def conflict(volume: bool, owner: str, node: bool, has_kubeconfig: bool, state: Path) -> str | None:
    """Why a state directory may not touch what is there; None where it may.

    `volume` is whether the registry's volume is there and `owner` its label (empty without one), `node`
    whether the node's container is there, `known` whether this directory has that cluster's kubeconfig.
    """
    if owner == str(state):
        return None
    if owner:
        return (
            f"The kind cluster {configuration.CLUSTER} belongs to the state directory {owner}, not to "
            f"{state}: Docker holds one of that name. Go on with that one (CREWYARD_STATE={owner}), or "
            f"remove it first: CREWYARD_STATE={owner} make down PURGE=1. If that directory is gone: "
            f"{_REMOVE_COMMANDS}"
        )
    # A cluster of a release that kept no owner is taken over by the directory that knows its kubeconfig.
    if not volume and (has_kubeconfig or not node):
        return None
    existing = f"container {configuration.NODE}" if node else f"volume {configuration.VOLUME}"
    return (
        f"Docker has a {existing} that no state directory is known to own, so it is left alone. "
        f"If nobody needs it, remove it: {_REMOVE_COMMANDS}"
    )


def check(state: Path, has_kubeconfig: bool) -> None:
    """Raises GroundError where another owns what is there."""
    volume = docker.inspect("volume", configuration.VOLUME)
    owner = ((volume[0].get("Labels") or {}) if volume else {}).get(configuration.OWNER, "")
    node = docker.inspect("container", configuration.NODE) is not None
    reason = conflict(volume is not None, str(owner), node, has_kubeconfig, state)
    if reason:
        raise DevClusterError(reason)


def claim(state: Path, has_kubeconfig: bool) -> None:
    """Makes `state` the owner where there is none. Raises GroundError where another is."""
    check(state, has_kubeconfig)
    # Docker leaves a volume that is there as it is: of two that come at once one is the owner.
    docker.run("volume", "create", f"--label={configuration.OWNER}={state}", configuration.VOLUME)
    check(state, has_kubeconfig)


def release() -> None:
    """Removes the mark with the registry's volume. The containers are gone by then."""
    if docker.inspect("volume", configuration.VOLUME) is not None:
        docker.run("volume", "rm", configuration.VOLUME)
