"""What a pod that asks for a run is told, and why. Pure. Called by `api.store.index.claims.claims`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.store.index.runs.runs import ENDED
from crds.json_depth import DEEPEST

NO_INPUT = "no input"
TAKEN_BACK = "the run was taken back"


@dataclass(frozen=True)
class Asked:
    """What a pod says of itself when it asks for its run."""

    run_uid: str
    pod_uid: str
    nonce: str


@dataclass(frozen=True)
class Granted:
    """The run is this pod's. `answer` is what it is told, but for the input."""

    answer: Mapping[str, Any]
    input: Mapping[str, Any]
    granted_at: datetime
    first: bool


@dataclass(frozen=True)
class Denied:
    """The run is not this pod's, for ever; `nor_of_another`: no pod can have it, and it is to fail."""

    reason: str
    nor_of_another: bool = False


@dataclass(frozen=True)
class Wait:
    """The run is free, but its project has as many claimed runs as its plan allows: ask again."""


@dataclass(frozen=True)
class Unknown:
    """The index does not know the run, or not its uid yet: read the object."""


def no_input(most: int) -> str:
    """Why nobody can have a run whose object gives no input; `most` are the bytes that one may have."""
    size = f"{most >> 10} KiB" if most % 1024 == 0 else f"{most} bytes"
    return (
        f"the Run's input is not held by the service: spec.input has more than {size} or {DEEPEST} levels, "
        f"or spec.inputRef names one that did not come through the API; put at most {size} into spec.input, "
        "or use POST /v1/runs"
    )


def decide(run: Any, claim: Any, asked: Asked) -> str:
    """`same`, `grant`, `unknown`, NO_INPUT, or the reason why the run is refused.

    `run` and `claim` are rows of the two tables, or None.
    """
    if claim is not None:
        values = (claim.run_uid, claim.pod_uid, claim.nonce)
        if values != (asked.run_uid, asked.pod_uid, asked.nonce):
            return "the run was given to another pod"
        # Who asks again never heard of the grant, and has started nothing: it need not start any more.
        return _over(run) or "same"
    if run is None:
        return "unknown"
    if run.withdrawn or run.hidden:
        return TAKEN_BACK
    if run.uid is None:
        return "unknown"
    if run.uid != asked.run_uid:
        return "the name was executed before; a name executes once"
    return _over(run) or ("grant" if run.input is not None else NO_INPUT)


def _over(run: Any) -> str | None:
    """Why a run is not to be started any more, whoever holds it."""
    if run is None or run.withdrawn or run.hidden:
        return TAKEN_BACK
    if run.status in ENDED:
        return "the run has ended"
    return "the run was canceled" if run.cancel else None
