"""Decision whether a pod gets the run it claims, and why. Pure. Called by `api.store.index.claims.claims`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.store.index.runs.runs import ENDED
from crds.json_depth import MAX_STORED_DEPTH
from crds.limits import CONFIG_BYTES

NO_INPUT = "no input"
WITHDRAWN = "the run was withdrawn"


@dataclass(frozen=True)
class ClaimRequest:
    """A pod's claim of its run: the identity that it sends."""

    run_uid: str
    pod_uid: str
    nonce: str


@dataclass(frozen=True)
class ClaimGranted:
    """The pod holds the run. `response` is the body for the pod, without the input."""

    response: Mapping[str, Any]
    input: Mapping[str, Any]
    granted_at: datetime
    first: bool


@dataclass(frozen=True)
class ClaimDenied:
    """The claim is denied permanently. If `unclaimable`, no pod can claim the run and it must fail."""

    reason: str
    unclaimable: bool = False


@dataclass(frozen=True)
class ClaimWait:
    """The run is free, but its project has as many claimed runs as its plan allows: the pod retries."""


@dataclass(frozen=True)
class Claimable:
    """The run is free and its project has a free slot: the columns of its row that a grant needs."""

    project: str
    deployment: str | None
    status: str
    input: Mapping[str, Any]
    entrypoint: str | None
    timeout: str | None
    config: Mapping[str, Any] | None
    context: Mapping[str, Any] | None
    traceparent: str | None = None


@dataclass(frozen=True)
class ClaimUnknown:
    """The index does not know the run, or its uid, yet: the caller reads the object."""


def no_input(max_bytes: int) -> str:
    """Return why no pod can claim a run whose object gives no input; an input has at most `max_bytes`."""
    size = f"{max_bytes >> 10} KiB" if max_bytes % 1024 == 0 else f"{max_bytes} bytes"
    return (
        f"the Run has no usable input: spec.input is larger than {size} or deeper than "
        f"{MAX_STORED_DEPTH} levels, spec.config or spec.context is larger than {CONFIG_BYTES >> 10} KiB, or "
        "spec.inputRef names an input that the API did not create; "
        f"put at most {size} into spec.input, or use POST /v1/runs"
    )


def decide(run: Any, claim: Any, request: ClaimRequest) -> str:
    """Return `same`, `grant`, `unknown`, NO_INPUT, or the reason for the denial.

    `run` and `claim` are rows of the two tables, or None.
    """
    if claim is not None:
        values = (claim.run_uid, claim.pod_uid, claim.nonce)
        if values != (request.run_uid, request.pod_uid, request.nonce):
            return "the run was given to another pod"
        # A pod that retries never got the grant and has started nothing: an ended run can still be denied.
        return _not_startable_reason(run) or "same"
    if run is None:
        return "unknown"
    if run.withdrawn or run.hidden:
        return WITHDRAWN
    if run.uid is None:
        return "unknown"
    if run.uid != request.run_uid:
        return "the name was executed before; a name executes once"
    return _not_startable_reason(run) or ("grant" if run.input is not None else NO_INPUT)


def _not_startable_reason(run: Any) -> str | None:
    """Return why a run must not start any more, regardless of its claim, or None."""
    if run is None or run.withdrawn or run.hidden:
        return WITHDRAWN
    if run.status in ENDED:
        return "the run has ended"
    return "the run was canceled" if run.cancel else None
