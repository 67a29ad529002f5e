"""Pushes in quick succession: a build for the first, one for the newest, and none for those in between. Pure.

Between two builds that commits begin there are ten seconds at least; heads that are
seen meanwhile wait, and the newest of them is deployed. A Deployment whose build has
not begun when a newer head gets its place is not built any more, unless somebody asked
for it. A head whose image is there already waits for nothing. Called by
`controller.project.decide`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.project.activation import Orders
from controller.runtime.decision import Create, Note, Patch
from crds import conditions, kinds
from crds.conditions import Condition
from crds.names import ANNOTATION_POLLED
from crds.objects import Deployment
from crds.reasons import BuildReason, DeploymentPhase

SECOND = 1.0
"""Creation times are whole seconds."""
_COSTS_NOTHING = ("Reused", "SameSourceBuilding")


@dataclass(frozen=True)
class Pace:
    """`window` in seconds; `has_image` is whether what is to be created would take over an image."""

    window: float = 0.0
    has_image: Callable[[Create], bool] = lambda _: False

    def wait(self, deployments: Sequence[Deployment], create: Create, now: datetime) -> float:
        """Seconds until a head that moved may be built; 0 where it may be now."""
        made = [d.created for d in deployments if _of_commit(d) and not _costs_nothing(d)]
        if not self.window or not made:
            return 0.0
        left = self.window + SECOND - (now - max(made)).total_seconds()
        return left if left > 0 and not self.has_image(create) else 0.0


AT_ONCE = Pace()
"""Every head at once."""


def overtaken(
    deployments: Sequence[Deployment], head: Deployment, orders: Orders, now: datetime
) -> list[Patch]:
    """The ends of those whose build has not begun, now that a newer head has its place."""
    return [
        _end(deployment, head, now)
        for deployment in deployments
        if _of_commit(deployment)
        and _nobody_asked(deployment)
        and 0 < orders.of(deployment) < orders.of(head)
        and not (deployment.built or deployment.failed or deployment.deleting)
        and not deployment.status.get("buildPod")
        and not _costs_nothing(deployment)
    ]


def commits(shas: Sequence[str]) -> str:
    """Commits as people write them."""
    return ", ".join(sha[:12] for sha in shas)


def _end(deployment: Deployment, head: Deployment, now: datetime) -> Patch:
    newer = str(head.spec.get("gitSha") or "")[:12]
    message = f"Commit {newer} ({head.name}) followed before the build began; this one is not built."
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
    told = Note("CommitsSkipped", f"{deployment.name}: {message}")
    version = deployment.resource_version
    return Patch(kinds.DEPLOYMENT, deployment.name, {"status": status}, version, events=(told,))


def _of_commit(deployment: Deployment) -> bool:
    return "git" in deployment.spec["source"] and not deployment.preview


def _nobody_asked(deployment: Deployment) -> bool:
    """Whether nobody but the source of the Project is there who would wait for it."""
    return ANNOTATION_POLLED in deployment.annotations and not deployment.activation


def _costs_nothing(deployment: Deployment) -> bool:
    """Whether another one's image is taken over, or waited for."""
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    return built.get("reason") in _COSTS_NOTHING
