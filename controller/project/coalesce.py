"""Coalescing of rapid pushes: build the first and the newest commit, skip the others. Pure.

Two builds that commits start are at least ten seconds apart; heads seen meanwhile wait, and the
newest one is deployed. A Deployment whose build has not started when a newer head gets its order
is superseded, unless a user requested it. A head whose image exists does not wait. Called by
`controller.project.decide`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.project.activation import Orders
from controller.runtime.decision import Create, ObjectEvent, Patch
from crds import conditions, kinds
from crds.conditions import Condition
from crds.names import ANNOTATION_POLLED
from crds.objects import Deployment
from crds.reasons import BuildReason, DeploymentPhase

CREATION_TIME_SECONDS = 1.0
"""Resolution of creation times in seconds."""
_REUSE_REASONS = ("Reused", "SameSourceBuilding")


@dataclass(frozen=True)
class CoalescingWindow:
    """Window in `seconds`; `has_image` returns whether a new Deployment would reuse an image."""

    seconds: float = 0.0
    has_image: Callable[[Create], bool] = lambda _: False

    def wait(self, deployments: Sequence[Deployment], create: Create, now: datetime) -> float:
        """Return seconds until a moved head may be built; 0 if it may be built now.

        0 also if the last creation is further in the future than the window: this clock is behind.
        """
        created = [d.created for d in deployments if _is_commit(d) and not _reuses_image(d)]
        if not self.seconds or not created:
            return 0.0
        window = self.seconds + CREATION_TIME_SECONDS
        left = window - (now - max(created)).total_seconds()
        return left if 0.0 < left <= 2 * window and not self.has_image(create) else 0.0


NO_COALESCING = CoalescingWindow()
"""Window of 0 s: build every head immediately."""


def supersede_patches(
    deployments: Sequence[Deployment], head: Deployment, commit: str, orders: Orders, now: datetime
) -> list[Patch]:
    """Return patches that supersede Deployments whose build has not started before a newer head.

    `head` is the Deployment of the observed `commit`.
    """
    return [
        _supersede(deployment, head, commit, now)
        for deployment in deployments
        if _is_commit(deployment)
        and _is_automatic(deployment)
        and 0 < orders.of(deployment) < orders.of(head)
        and not (deployment.built or deployment.failed or deployment.deleting)
        and not deployment.status.get("buildPod")
        and not _reuses_image(deployment)
    ]


def short_commits(shas: Sequence[str]) -> str:
    """Return commits as short hashes."""
    return ", ".join(sha[:12] for sha in shas)


def _supersede(deployment: Deployment, head: Deployment, commit: str, now: datetime) -> Patch:
    newer = short_commits([commit])
    message = f"Commit {newer} ({head.name}) followed before the build started; this commit is not built."
    reason = BuildReason.SUPERSEDED
    wanted = [
        Condition(conditions.READY, False, reason, message),
        Condition(conditions.BUILT, False, reason, message),
        Condition(conditions.STALLED, True, reason, message),
    ]
    status: dict[str, Any] = {
        "observedGeneration": deployment.generation,
        "phase": str(DeploymentPhase.FAILED),
        "conditions": conditions.merge(deployment.conditions, wanted, deployment.generation, now),
        "error": {"reason": reason, "message": message, "hint": "The newer commit is deployed instead."},
    }
    note = ObjectEvent("CommitsSkipped", f"{deployment.name}: {message}")
    version = deployment.resource_version
    return Patch(kinds.DEPLOYMENT, deployment.name, {"status": status}, version, events=(note,))


def _is_commit(deployment: Deployment) -> bool:
    return "git" in deployment.spec["source"] and not deployment.preview


def _is_automatic(deployment: Deployment) -> bool:
    """Return whether a poll created the Deployment and no user activated it."""
    return ANNOTATION_POLLED in deployment.annotations and not deployment.activation


def _reuses_image(deployment: Deployment) -> bool:
    """Return whether it reuses the image of another Deployment, or waits for one."""
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    return built.get("reason") in _REUSE_REASONS
