"""Plans and timeouts, computed identically by API and controller.

Precedence of a run's timeout: Run, configuration file, Project, default; of a build's: Project, default. None
is above the installation's maximum.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from crds import durations
from crds.installation_limits import InstallationLimits, range_problem
from crds.objects import DEFAULT_PLAN, Deployment, Project, Run

GRACE_SECONDS = 10
"""From SIGTERM to SIGKILL of a crew."""
CONFIG_BYTES = 16384
"""Maximum of config and of context of a run, which are in its object."""
FLUSH_SECONDS = 50
"""For the runner to deliver events, artifacts and result after its crew has exited."""
DEFAULT_RETAINED_DEPLOYMENTS = 20
"""Of a project that sets no `retention.deployments`."""


PROJECT_REQUESTS_FACTOR = 10
REQUESTS_FOR_DEPLOYMENT = 10
"""A deployment a minute for so many requests a minute, unless the plan sets its own number."""
PLAN_LIMITS = (
    "queue",
    "deployment_queue",
    "run_max_seconds",
    "ask_max_seconds",
    "build_max_seconds",
    "image_bytes",
    "artifacts",
    "artifact_bytes",
    "log_lines",
    "events",
    "events_bytes",
    "open_streams",
    "retained_run_seconds",
    "retained_record_seconds",
    "retained_deployments",
    "project_keys",
    "warm_pods",
    "warm_builders",
)
"""The limits of the installation that a plan may lower for its projects."""


@dataclass(frozen=True)
class PlanLimits:
    """Limits of a plan."""

    requests_per_minute: int
    concurrent_runs: int
    project_requests_per_minute: int = 0
    """Of all keys and tokens that are bound to one project; 0: ten times `requests_per_minute`."""
    stored_bytes: int = 0
    """Events, artifacts and uploads of a project; 0: the limit `project_bytes` of the installation."""

    concurrent_builds: int = 0
    """Builds of a project at a time; 0: CREWYARD_MAX_BUILDS_PER_PROJECT."""

    deployments_per_minute: int = 0
    """Of a project, by the API; 0: a tenth of `requests_per_minute`."""

    limits: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Some of PLAN_LIMITS; one above the installation's has no effect."""

    @property
    def requests_of_project(self) -> int:
        """The requests per minute of all bound callers of a project."""
        return self.project_requests_per_minute or PROJECT_REQUESTS_FACTOR * self.requests_per_minute

    @property
    def deployments_of_project(self) -> int:
        """The deployments per minute that the API accepts for a project."""
        return self.deployments_per_minute or max(1, self.requests_per_minute // REQUESTS_FOR_DEPLOYMENT)

    def is_within(self, other: "PlanLimits") -> bool:
        """Return whether no limit is above that of the other plan."""
        return (
            self.requests_per_minute <= other.requests_per_minute
            and self.concurrent_runs <= other.concurrent_runs
            and self.requests_of_project <= other.requests_of_project
            and all(self.limits.get(name, inf) <= value for name, value in other.limits.items())
        )


@dataclass(frozen=True)
class Plans:
    """The installation's plans by name."""

    by_name: Mapping[str, PlanLimits] = field(
        default_factory=lambda: {
            DEFAULT_PLAN: PlanLimits(60, 2),
            "pro": PlanLimits(300, 10),
            "enterprise": PlanLimits(6000, 100),
        }
    )

    def of(self, plan: str) -> PlanLimits:
        """Return the limits of a plan; an unknown one counts as free, the smallest."""
        return self.by_name.get(plan) or self.by_name[DEFAULT_PLAN]

    @property
    def has_limits(self) -> bool:
        """Whether a plan lowers a limit of the installation."""
        return any(plan.limits for plan in self.by_name.values())

    def limits_of(self, plan: str, limits: InstallationLimits) -> InstallationLimits:
        """Return the limits of a project with this plan: the installation's, some lowered by the plan."""
        lowered = self.of(plan).limits
        if not lowered:
            return limits
        return replace(limits, **{name: min(value, getattr(limits, name)) for name, value in lowered.items()})


def parse_plans(text: str) -> Plans:
    """Parse CREWYARD_PLANS on top of the built-in plans. Raises ValueError naming the plan and the key."""
    plans = dict(Plans().by_name)
    try:
        configured = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise ValueError(f"must be a JSON object of plans: {error}") from error
    if not isinstance(configured, dict):
        raise ValueError("must be a JSON object of plans")
    for name, limits in configured.items():
        try:
            plans[name] = PlanLimits(
                int(limits["requests_per_minute"]),
                int(limits["concurrent_runs"]),
                int(limits.get("project_requests_per_minute", 0)),
                int(limits.get("stored_bytes", 0)),
                int(limits.get("concurrent_builds", 0)),
                int(limits.get("deployments_per_minute", 0)),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"plan {name!r} needs the integers requests_per_minute and concurrent_runs"
            ) from error
        plans[name] = replace(plans[name], limits=_lowered_limits(name, limits.get("limits", {})))
    return Plans(plans)


def _lowered_limits(plan: str, limits: Any) -> dict[str, int]:
    if not isinstance(limits, dict):
        raise ValueError(f"plan {plan!r}: limits must be an object of limits")
    for name, value in limits.items():
        if name not in PLAN_LIMITS:
            raise ValueError(
                f"plan {plan!r}: limits: a plan cannot lower {name!r}; it can lower {', '.join(PLAN_LIMITS)}"
            )
        if (problem := range_problem(name, value)) is not None:
            raise ValueError(f"plan {plan!r}: limits: {problem}")
    return limits


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


def ask_timeout(project: Project | None, limits: InstallationLimits) -> int:
    """Return the seconds that a run may wait for answers of a person, in total; 0 if it cannot ask."""
    requested = ((project.spec.get("run") or {}).get("askTimeout") if project else None) or ""
    seconds = durations.seconds(requested) if requested else limits.ask_seconds
    return min(seconds, limits.ask_max_seconds)


def build_timeout(project: Project, default_seconds: int, limits: InstallationLimits) -> int:
    """Return the seconds that one pod of a build may take."""
    requested = (project.spec.get("build") or {}).get("timeout")
    return min(durations.seconds(requested) if requested else default_seconds, limits.build_max_seconds)


def warm_pods(project: Project, plans: Plans, limits: InstallationLimits) -> int:
    """Return how many pods of a project wait for a run: at most as many runs as its plan allows at a time."""
    return min(requested_warm_pods(project), plans.of(project.plan).concurrent_runs, limits.warm_pods)


def lowered_warm_pods(project: Project, plans: Plans, limits: InstallationLimits) -> tuple[str, ...]:
    """Return a note if fewer pods of a Project wait for a run than it asks for."""
    return _lowered("run.warm", requested_warm_pods(project), warm_pods(project, plans, limits))


def warm_builders(project: Project, limits: InstallationLimits) -> int:
    """Return how many pods of a project wait for a build."""
    return min(requested_warm_builders(project), limits.warm_builders)


def lowered_warm_builders(project: Project, limits: InstallationLimits) -> tuple[str, ...]:
    """Return a note if fewer pods of a Project wait for a build than it asks for."""
    return _lowered("build.warm", requested_warm_builders(project), warm_builders(project, limits))


def retained_deployments(project: Project, limits: InstallationLimits) -> int:
    """Return how many Deployments of a project are kept, without its previews."""
    requested = _requested_retained_deployments(project) or DEFAULT_RETAINED_DEPLOYMENTS
    return min(requested, limits.retained_deployments)


def lowered_retained_deployments(project: Project, limits: InstallationLimits) -> tuple[str, ...]:
    """Return a note if fewer Deployments of a Project are kept than it asks for."""
    requested = _requested_retained_deployments(project)
    return _lowered("retention.deployments", requested, retained_deployments(project, limits))


def _requested_retained_deployments(project: Project) -> int:
    return int((project.spec.get("retention") or {}).get("deployments") or 0)


def _lowered(field: str, requested: int, given: int) -> tuple[str, ...]:
    return (f"{field}: {requested} is lowered to {given}",) if given < requested else ()


def unknown_plan(project: Project, plans: Plans) -> tuple[str, ...]:
    """Return a note if the installation does not have a Project's plan."""
    if project.plan in plans.by_name:
        return ()
    known = ", ".join(sorted(plans.by_name))
    return (f"plan: {project.plan} is lowered to {DEFAULT_PLAN}; the plans are {known}",)


def requested_warm_pods(project: Project) -> int:
    """Return how many pods a Project asks to wait for a run."""
    return int((project.spec.get("run") or {}).get("warm") or 0)


def requested_warm_builders(project: Project) -> int:
    """Return how many pods a Project asks to wait for a build."""
    return int((project.spec.get("build") or {}).get("warm") or 0)


def lowered_timeouts(project: Project, limits: InstallationLimits) -> tuple[str, ...]:
    """Return a note for each timeout of a Project above the installation's maximum."""
    maxima = {
        ("run", "timeout"): limits.run_max_seconds,
        ("run", "askTimeout"): limits.ask_max_seconds,
        ("build", "timeout"): limits.build_max_seconds,
    }
    requested = {(part, field): (project.spec.get(part) or {}).get(field) for part, field in maxima}
    return tuple(
        f"{part}.{field}: {text} is lowered to {durations.text(maxima[part, field])}"
        for (part, field), text in requested.items()
        if text and durations.seconds(text) > maxima[part, field]
    )
