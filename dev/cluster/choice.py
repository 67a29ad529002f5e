"""Selection of the dev cluster: the embedded node, `kind`, or the cluster of the current context.

`decide` is pure. Called by `dev.cluster.cluster`, which passes the requested cluster, the recorded one and a
function that checks Docker. `up` records its choice in the state directory, so every later command uses the
same cluster.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from dev import files
from dev.errors import DevClusterError, OperationRefused
from dev.settings import Settings

EMBEDDED = "embedded"
KIND = "kind"
CURRENT = "current"
NAMES = (EMBEDDED, KIND, CURRENT)
VARIABLE = "CREWYARD_CLUSTER"

# What each make target does to a cluster that others may also use.
_IMPACT = {
    "test": "its tests stop the service, add nodes and fill queues",
    "test-all": "its tests stop the service, kill the node's programs and fill queues",
    "cluster": "its tests create namespaces, install other versions of the CRDs and stop servers",
    "campaign": "it kills processes, stops the apiserver and fills disks",
    "bench": "it loads the apiserver with hundreds of objects in parallel",
    "fuzz": "it sends thousands of malformed requests",
}
# kind and the current context's cluster keep their data after `down` without PURGE.
_DOWN_COMMANDS = {EMBEDDED: "down", KIND: "down PURGE=1", CURRENT: "down PURGE=1"}
_EMBEDDED_ONLY = ("campaign",)
_SAFE_TARGETS = "make demo, make e2e"


def requested(environment: Mapping[str, str]) -> str | None:
    """Return the value of CREWYARD_CLUSTER, or None if unset. Raises DevClusterError for an unknown value."""
    value = environment.get(VARIABLE, "").strip()
    if not value:
        return None
    if value not in NAMES:
        raise DevClusterError(
            f"{VARIABLE} is {value!r}. Set it to one of {', '.join(NAMES)}, or leave it unset."
        )
    return value


def decide(
    requested: str | None,
    recorded: str | None,
    has_embedded_data: bool,
    starting: bool,
    docker_usable: Callable[[], bool],
) -> str:
    """Return the name of the cluster that a command uses.

    `recorded` is the choice of an `up` that has not been purged since, `has_embedded_data` tells whether the
    embedded node's data exists, `starting` whether the command is `up`. `docker_usable` checks whether Docker
    can run kind; it is slow and therefore called last. Raises DevClusterError if another cluster is requested
    than the one that is up.
    """
    if recorded:
        if requested and requested != recorded:
            raise DevClusterError(
                f"{VARIABLE} is {requested}, but this state directory belongs to a dev cluster on "
                f"{recorded}. Set CREWYARD_STATE to another directory, or remove that cluster first: "
                f"make {_DOWN_COMMANDS[recorded]} {VARIABLE}={recorded}"
            )
        return recorded
    if requested:
        return requested
    # An existing embedded node wins, even if Docker was installed after it was created.
    if has_embedded_data or not starting or not docker_usable():
        return EMBEDDED
    return KIND


def unsupported_reason(cluster: str, target: str) -> str | None:
    """Return why a make target must not run on this cluster, or None if it may."""
    if target in _EMBEDDED_ONLY and cluster != EMBEDDED:
        return (
            f"`make {target}` runs only on the embedded node: {_IMPACT[target]}. "
            f"Use it with {VARIABLE}={EMBEDDED} and a separate state directory."
        )
    if cluster == CURRENT and target in _IMPACT:
        return (
            f"`make {target}` does not run on the cluster of your current context: {_IMPACT[target]}. "
            f"Safe there: {_SAFE_TARGETS}. For other targets use {VARIABLE}={EMBEDDED} or {VARIABLE}={KIND}, "
            "with a separate state directory (CREWYARD_STATE)."
        )
    return None


def check_replicas(cluster: str) -> None:
    """Raise OperationRefused if `make up HA=1` cannot run on this cluster."""
    if cluster != EMBEDDED:
        raise OperationRefused(
            f"HA is a choice of the embedded node, which runs PostgreSQL, an S3 server and Redis; this dev "
            f"cluster is {cluster}. Leave HA unset; docs/installation.md says how to install replicas."
        )


def check(cluster: str, target: str) -> None:
    """Raise OperationRefused if a make target must not run on this cluster."""
    reason = unsupported_reason(cluster, target)
    if reason:
        raise OperationRefused(reason)


def _record_file(settings: Settings) -> Path:
    return settings.state / "cluster"


def recorded(settings: Settings) -> str | None:
    """Return the cluster that is up, or was up when the machine stopped; None if there is none.

    The embedded node has no record; its directory of process records serves as one. Raises DevClusterError
    if the state directory is another user's.
    """
    try:
        name = _record_file(settings).read_text().strip()
    except PermissionError as error:
        raise DevClusterError(
            f"The state directory {settings.state} belongs to {_owner(settings)}. Repeat the command as that "
            "user, or set CREWYARD_STATE to another directory."
        ) from error
    except OSError:
        name = ""
    if name in NAMES:
        return name
    return EMBEDDED if settings.run.is_dir() else None


def _owner(settings: Settings) -> str:
    try:
        return settings.state.owner()
    except (OSError, KeyError):  # a directory above is closed too, or the user has no name
        return "another user"


def record(settings: Settings, name: str) -> None:
    """Write the choice of an `up`, before `up` changes anything. The state directory must exist."""
    files.write(_record_file(settings), f"{name}\n")


def remove_record(settings: Settings) -> None:
    """Delete the record, so the next `up` chooses again."""
    _record_file(settings).unlink(missing_ok=True)


def has_embedded_data(settings: Settings) -> bool:
    """Return whether the state directory holds the embedded node's data."""
    return (settings.data / "etcd").is_dir()
