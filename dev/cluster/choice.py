"""Which cluster the ground is on: the embedded node, `kind`, or the one that the current context names.

`decide` is pure; `dev.cluster.cluster` hands it what was asked for, what was chosen
before and a way to ask for Docker. The choice of an `up` is noted in the state
directory, so that every later command means the same cluster.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from dev.errors import DevClusterError, OperationRefused
from dev.settings import Settings

EMBEDDED = "embedded"
KIND = "kind"
CURRENT = "current"
NAMES = (EMBEDDED, KIND, CURRENT)
VARIABLE = "CREWYARD_CLUSTER"

# What each make target does to a cluster that others may use too.
_IMPACT = {
    "test": "its tests stop the service, make nodes and fill queues",
    "cluster": "its tests make namespaces, install other versions of the kinds and stop servers",
    "campaign": "it kills processes, stops the apiserver and fills disks",
    "bench": "it loads the apiserver with hundreds of objects at once",
    "fuzz": "it makes thousands of odd requests",
}
# kind and a cluster elsewhere keep what is on them after a mere `down`.
_DOWN_COMMANDS = {EMBEDDED: "down", KIND: "down PURGE=1", CURRENT: "down PURGE=1"}
_EMBEDDED_ONLY = ("campaign",)
_SAFE_TARGETS = "make demo, make e2e"


def requested(environment: Mapping[str, str]) -> str | None:
    """The value of CREWYARD_CLUSTER; None where it is unset. Raises GroundError for any other word."""
    value = environment.get(VARIABLE, "").strip()
    if not value:
        return None
    if value not in NAMES:
        raise DevClusterError(
            f"{VARIABLE} is {value!r}. It is one of: {', '.join(NAMES)}; or leave it unset."
        )
    return value


def decide(
    requested: str | None,
    recorded: str | None,
    has_embedded_data: bool,
    starting: bool,
    docker_usable: Callable[[], bool],
) -> str:
    """The cluster that a command means.

    `noted` is the choice of an `up` that was not taken away since, `kept` whether the embedded node's data
    is there, `starting` whether the command is `up`, `able` asks whether Docker can carry kind (slow, so it
    is asked last). Raises GroundError where another cluster is asked for than the one that is up.
    """
    if recorded:
        if requested and requested != recorded:
            raise DevClusterError(
                f"{VARIABLE} is {requested}, but this state directory belongs to a ground on {recorded}. Set "
                f"CREWYARD_STATE to another directory, or take that one down first: "
                f"make {_DOWN_COMMANDS[recorded]} {VARIABLE}={recorded}"
            )
        return recorded
    if requested:
        return requested
    # Whoever has used the embedded node so far finds it again, whatever else the machine has got meanwhile.
    if has_embedded_data or not starting or not docker_usable():
        return EMBEDDED
    return KIND


def unsupported_reason(cluster: str, target: str) -> str | None:
    """Why a make target does not run on this cluster; None where it does."""
    if target in _EMBEDDED_ONLY and cluster != EMBEDDED:
        return (
            f"`make {target}` runs on the embedded node only: {_IMPACT[target]}. "
            f"Use it with {VARIABLE}={EMBEDDED} and a state directory of its own."
        )
    if cluster == CURRENT and target in _IMPACT:
        return (
            f"`make {target}` does not run on the cluster of your current context: {_IMPACT[target]}. "
            f"On it run: {_SAFE_TARGETS}. For the rest: {VARIABLE}={EMBEDDED} or {VARIABLE}={KIND}, "
            "with a state directory of its own (CREWYARD_STATE)."
        )
    return None


def check(cluster: str, target: str) -> None:
    """Raises Refused where a make target does not run on this cluster."""
    reason = unsupported_reason(cluster, target)
    if reason:
        raise OperationRefused(reason)


def _record_file(settings: Settings) -> Path:
    return settings.state / "cluster"


def recorded(settings: Settings) -> str | None:
    """The cluster of the ground that is up, or was when the machine went down.

    The embedded node leaves no note: its directory of process records says as much.
    """
    try:
        name = _record_file(settings).read_text().strip()
    except OSError:
        name = ""
    if name in NAMES:
        return name
    return EMBEDDED if settings.run.is_dir() else None


def record(settings: Settings, name: str) -> None:
    """Keeps the choice of an `up`, before it changes anything. The state directory is there."""
    _record_file(settings).write_text(f"{name}\n")


def remove_record(settings: Settings) -> None:
    """Lets the next `up` choose again."""
    _record_file(settings).unlink(missing_ok=True)


def has_embedded_data(settings: Settings) -> bool:
    """Whether the embedded node's data is in the state directory."""
    return (settings.data / "etcd").is_dir()
