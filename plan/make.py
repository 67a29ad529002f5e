"""A source tree's plan, whole. Called by the build pods and by the command line's lint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plan.configuration import DEFAULT_ENTRYPOINT, Configuration, read_configuration
from plan.dependencies import Declaration, read_dependencies
from plan.entrypoint import check_entrypoint
from plan.errors import CONFIG_INVALID, PlanError, listed
from plan.framework import framework_of
from plan.source import Files


@dataclass(frozen=True)
class Plan:
    """How a crew is run. `timeout` is a duration text such as 1h30m, or None."""

    framework: str
    entrypoint: str
    python: str
    timeout: str | None = None
    env_required: tuple[str, ...] = ()

    def as_status(self) -> dict[str, Any]:
        """The form in `Deployment.status.plan`; a timeout that is not set is left out."""
        status: dict[str, Any] = {
            "framework": self.framework,
            "entrypoint": self.entrypoint,
            "python": self.python,
            "envRequired": list(self.env_required),
        }
        if self.timeout is not None:
            status["timeout"] = self.timeout
        return status


@dataclass(frozen=True)
class Planned:
    """A plan and what has to be installed for it."""

    plan: Plan
    declaration: Declaration


def make_plan(files: Files, crew: str | None, offered: Sequence[str]) -> Planned:
    """The plan of `crew` (None: the tree's only one) for an installation that offers these Python versions.

    The first of `offered` is taken where the tree names none. Raises PlanError.
    """
    configuration = read_configuration(files, crew)
    python = _python(configuration, offered)
    declaration = read_dependencies(files, configuration)
    entrypoint = configuration.entrypoint or DEFAULT_ENTRYPOINT
    check_entrypoint(files, entrypoint, configuration.origin, python)
    plan = Plan(
        framework=framework_of(configuration, declaration),
        entrypoint=entrypoint,
        python=python,
        timeout=configuration.timeout,
        env_required=configuration.env_required,
    )
    return Planned(plan, declaration)


def _python(configuration: Configuration, offered: Sequence[str]) -> str:
    if not offered:
        raise PlanError(
            CONFIG_INVALID,
            "this installation offers no Python version at all",
            "Ask an administrator to set CREWYARD_BASE_IMAGES.",
        )
    declared = configuration.python
    if declared is None:
        return offered[0]
    if declared not in offered:
        raise PlanError(
            CONFIG_INVALID,
            f"{configuration.python_origin} is {declared!r}; offered here: {listed(list(offered))}",
            "Choose one of those, or leave it out.",
        )
    return declared
