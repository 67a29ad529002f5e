"""Framework of a crew: configured, else inferred from its dependencies. Called by plan.make."""

from ..errors import UNSUPPORTED_FRAMEWORK, PlanError, closest_match, join_limited
from ..packages.dependencies import DependencyDeclaration
from .configuration import Configuration

FRAMEWORKS = ("crewai", "langgraph", "python")


def framework_of(configuration: Configuration, declaration: DependencyDeclaration) -> str:
    """Return one of FRAMEWORKS. Raises PlanError(UnsupportedFramework) for another declared one."""
    declared = configuration.framework
    if declared is None:
        for name in ("crewai", "langgraph"):
            if name in declaration.packages:
                return name
        return "python"
    if declared not in FRAMEWORKS:
        suggestion = closest_match(declared.lower(), FRAMEWORKS)
        raise PlanError(
            UNSUPPORTED_FRAMEWORK,
            f"framework is {declared!r}; supported are {join_limited(FRAMEWORKS)}",
            f"Did you mean {suggestion!r}?" if suggestion else 'Use "python" for any other framework.',
        )
    return declared
