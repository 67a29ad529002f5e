"""A source tree's plan, whole. Called by the build pods and by the command line's lint."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from .config.configuration import DEFAULT_ENTRYPOINT, read_configuration
from .config.framework import framework_of
from .entrypoint import find_entrypoint
from .exclude import left_out
from .packages.dependencies import Declaration, read_dependencies
from .python import choose_python
from .source import Files, without


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
    """A plan and what has to be installed for it; `left_out` are the paths that are no part of the image."""

    plan: Plan
    declaration: Declaration
    left_out: Collection[str] = ()


def make_plan(files: Files, crew: str | None, offered: Sequence[str], private_index: bool = False) -> Planned:
    """The plan of `crew` (None: the tree's only one) for an installation that offers these Python versions.

    Only the configuration is read from excluded files too. `private_index`: packages come as wheels
    that were downloaded before. Raises PlanError.
    """
    configuration = read_configuration(files, crew)
    gone = left_out(files, configuration.exclude)
    if gone:
        files = without(files, gone)
    python = choose_python(files, configuration, offered)
    entrypoint = configuration.entrypoint or DEFAULT_ENTRYPOINT
    located = find_entrypoint(
        files,
        entrypoint,
        configuration.origin,
        python,
        gone,
        installing=configuration.entrypoint is not None,
    )
    declaration = read_dependencies(files, configuration, located.project, private_index)
    plan = Plan(
        framework=framework_of(configuration, declaration),
        entrypoint=entrypoint,
        python=python,
        timeout=configuration.timeout,
        env_required=configuration.env_required,
    )
    return Planned(plan, declaration, gone)
