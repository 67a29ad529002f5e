"""Plans and run timeouts, computed identically by API and controller.

Precedence of a run's timeout: Run, configuration file, Project, default; never above the installation's
maximum.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from crds import durations
from crds.installation_limits import InstallationLimits
from crds.objects import Deployment, Project, Run

GRACE_SECONDS = 10
"""From SIGTERM to SIGKILL of a crew."""
FLUSH_SECONDS = 50
"""For the runner to deliver events, artifacts and result after its crew has exited."""


@dataclass(frozen=True)
class PlanLimits:
    """Limits of a plan."""

    requests_per_minute: int
    concurrent_runs: int


@dataclass(frozen=True)
class Plans:
    """The installation's plans by name."""

    by_name: Mapping[str, PlanLimits] = field(
        default_factory=lambda: {
            "free": PlanLimits(60, 2),
            "pro": PlanLimits(300, 10),
            "enterprise": PlanLimits(6000, 100),
        }
    )

    def of(self, plan: str) -> PlanLimits:
        """Return the limits of a plan; an unknown one counts as free, the smallest."""
        return self.by_name.get(plan) or self.by_name["free"]


def parse_plans(text: str) -> Plans:
    """Parse CREWYARD_PLANS on top of the built-in plans. Raises ValueError naming the plan and the key."""
    plans = dict(Plans().by_name)
    configured = json.loads(text) if text.strip() else {}
    for name, limits in configured.items():
        try:
            plans[name] = PlanLimits(int(limits["requests_per_minute"]), int(limits["concurrent_runs"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"CREWYARD_PLANS: plan {name!r} needs the integers requests_per_minute and concurrent_runs"
            ) from error
    return Plans(plans)


def run_timeout(
    run: Run, deployment: Deployment | None, project: Project | None, limits: InstallationLimits
) -> int:
    """Return the seconds that a run may take, counted from its claim."""
    requested = (
        run.spec.get("timeout")
        or (deployment.plan.get("timeout") if deployment else None)
        or ((project.spec.get("run") or {}).get("timeout") if project else None)
    )
    return min(durations.seconds(requested) if requested else limits.run_seconds, limits.run_max_seconds)
