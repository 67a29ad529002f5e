"""The input of the checker: requests and observations. Values of `watcher` and `observation`. Pure.

Runs go by their objects' names (`run-…`); statuses are the API's words, in lower case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PENDING, RUNNING, SUCCEEDED, FAILED, CANCELED = "pending", "running", "succeeded", "failed", "canceled"
TERMINAL = frozenset((SUCCEEDED, FAILED, CANCELED))
INFRASTRUCTURE = frozenset(
    (
        "RunnerLost",
        "NodeLost",
        "PodDeleted",
        "Evicted",
        "Preempted",
        "StartTimeout",
        "ImagePullFailed",
        "ArtifactsLost",
    )
)
"""Reasons for which a run may fail during faults of the cluster."""


@dataclass(frozen=True)
class RequestedRun:
    """One run or Job that was asked for, and how it may end: `succeeded`, `failed:OOMKilled`, `canceled`.

    An empty `run` was never acknowledged and has no name that is known. With `tolerant` an infrastructure
    reason is an end too, with at most one start. `object_only`: only an object was made, which is lost with
    etcd's files if no list had returned it yet.
    """

    run: str
    script: Mapping[str, Any]
    ends: frozenset[str] = frozenset((SUCCEEDED,))
    acknowledged: bool = True
    tolerant: bool = False
    object_only: bool = False


@dataclass(frozen=True)
class StatusObservation:
    """A status that was seen at a time; `source` is `object` or `list`."""

    at: float
    source: str
    run: str
    status: str


@dataclass(frozen=True)
class ObservedEvent:
    """One event of a run."""

    id: int
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ApiRunRecord:
    """A run after everything: as the API tells of it."""

    run: str
    status: str
    reason: str = ""
    events: tuple[ObservedEvent, ...] = ()
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of the bytes that were downloaded, by name."""
    reported: bool = True
    """Whether its runner lived to report a result, which is taken once all events are there."""
    stopped: bool = False
    """Whether its runner reported that it was stopped before the crew ended."""


@dataclass(frozen=True)
class StreamRead:
    """The events that one reader received during a run; `whole`: the stream has ended."""

    run: str
    events: tuple[ObservedEvent, ...]
    whole: bool = False


@dataclass(frozen=True)
class SentAnswer:
    """One answer to a question of a run; `accepted`: the API said that it is the answer."""

    run: str
    request: str
    value: Any
    accepted: bool


@dataclass(frozen=True)
class ReceivedMessage:
    """One message of a notification; `id` is the same in every repetition, `run` is the API's id."""

    id: str
    type: str
    run: str


@dataclass(frozen=True)
class Observations:
    """All observations. `active` has the number of active deployments of a project at each poll;
    `left` names what is there after all and should not be, `missing` what should be and is not.
    """

    runs: Mapping[str, ApiRunRecord]
    sights: tuple[StatusObservation, ...] = ()
    active: tuple[int, ...] = ()
    left: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reads: tuple[StreamRead, ...] = ()
    answers: tuple[SentAnswer, ...] = ()
    messages: tuple[ReceivedMessage, ...] | None = None
    """What the receiver of notifications got; None without a receiver."""


@dataclass(frozen=True)
class CampaignPlan:
    """What the test wanted. `concurrency` 0: as many as there are."""

    requested: tuple[RequestedRun, ...]
    concurrency: int = 0
    jobs: bool = False
    """Whether these are bare Jobs, which have no events, artifacts or reason."""
