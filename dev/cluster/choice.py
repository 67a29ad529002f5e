"""Which cluster the ground is on: the embedded node, `kind`, or the one that the current context names.

`decide` is pure; `dev.cluster.cluster` hands it what was asked for, what was chosen
before and a way to ask for Docker. The choice of an `up` is noted in the state
directory, so that every later command means the same cluster.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from dev.errors import GroundError, Refused
from dev.settings import Settings

EMBEDDED = "embedded"
KIND = "kind"
CURRENT = "current"
NAMES = (EMBEDDED, KIND, CURRENT)
VARIABLE = "CREWYARD_CLUSTER"

# What each make target does to a cluster that others may use too.
_HARM = {
    "test": "its tests stop the service, make nodes and fill queues",
    "cluster": "its tests make namespaces, install other versions of the kinds and stop servers",
    "campaign": "it kills processes, stops the apiserver and fills disks",
    "bench": "it loads the apiserver with hundreds of objects at once",
    "fuzz": "it makes thousands of odd requests",
}
# kind and a cluster elsewhere keep what is on them after a mere `down`.
_TAKES_DOWN = {EMBEDDED: "down", KIND: "down PURGE=1", CURRENT: "down PURGE=1"}
_EMBEDDED_ONLY = ("campaign",)
_SAFE = "make demo, make e2e"


def asked_for(environment: Mapping[str, str]) -> str | None:
    """The value of CREWYARD_CLUSTER; None where it is unset. Raises GroundError for any other word."""
    value = environment.get(VARIABLE, "").strip()
    if not value:
        return None
    if value not in NAMES:
        raise GroundError(f"{VARIABLE} is {value!r}. It is one of: {', '.join(NAMES)}; or leave it unset.")
    return value


def decide(asked: str | None, noted: str | None, kept: bool, starting: bool, able: Callable[[], bool]) -> str:
    """The cluster that a command means.

    `noted` is the choice of an `up` that was not taken away since, `kept` whether the embedded node's data
    is there, `starting` whether the command is `up`, `able` asks whether Docker can carry kind (slow, so it
    is asked last). Raises GroundError where another cluster is asked for than the one that is up.
    """
    if noted:
        if asked and asked != noted:
            raise GroundError(
                f"{VARIABLE} is {asked}, but this state directory belongs to a ground on {noted}. Set "
                f"CREWYARD_STATE to another directory, or take that one down first: "
                f"make {_TAKES_DOWN[noted]} {VARIABLE}={noted}"
            )
        return noted
    if asked:
        return asked
    # Whoever has used the embedded node so far finds it again, whatever else the machine has got meanwhile.
    if kept or not starting or not able():
        return EMBEDDED
    return KIND


def unfit(cluster: str, target: str) -> str | None:
    """Why a make target does not run on this cluster; None where it does."""
    if target in _EMBEDDED_ONLY and cluster != EMBEDDED:
        return (
            f"`make {target}` runs on the embedded node only: {_HARM[target]}. "
            f"Use it with {VARIABLE}={EMBEDDED} and a state directory of its own."
        )
    if cluster == CURRENT and target in _HARM:
        return (
            f"`make {target}` does not run on the cluster of your current context: {_HARM[target]}. "
            f"On it run: {_SAFE}. For the rest: {VARIABLE}={EMBEDDED} or {VARIABLE}={KIND}, "
            "with a state directory of its own (CREWYARD_STATE)."
        )
    return None


def check(cluster: str, target: str) -> None:
    """Raises Refused where a make target does not run on this cluster."""
    why = unfit(cluster, target)
    if why:
        raise Refused(why)


def _note(settings: Settings) -> Path:
    return settings.state / "cluster"


def noted(settings: Settings) -> str | None:
    """The cluster of the ground that is up, or was when the machine went down.

    The embedded node leaves no note: its directory of process records says as much.
    """
    try:
        name = _note(settings).read_text().strip()
    except OSError:
        name = ""
    if name in NAMES:
        return name
    return EMBEDDED if settings.run.is_dir() else None


def note(settings: Settings, name: str) -> None:
    """Keeps the choice of an `up`, before it changes anything. The state directory is there."""
    _note(settings).write_text(f"{name}\n")


def forget(settings: Settings) -> None:
    """Lets the next `up` choose again."""
    _note(settings).unlink(missing_ok=True)


def kept(settings: Settings) -> bool:
    """Whether the embedded node's data is in the state directory."""
    return (settings.data / "etcd").is_dir()
