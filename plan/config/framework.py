"""Which framework a crew uses: as configured, else as its dependencies show. Called by plan.make."""

from ..errors import UNSUPPORTED_FRAMEWORK, PlanError, listed, nearest
from ..packages.dependencies import Declaration
from .configuration import Configuration

FRAMEWORKS = ("crewai", "langgraph", "python")


def framework_of(configuration: Configuration, declaration: Declaration) -> str:
    """One of FRAMEWORKS. Raises PlanError(UnsupportedFramework) for a declared one that is none of them."""
    declared = configuration.framework
    if declared is None:
        for name in ("crewai", "langgraph"):
            if name in declaration.packages:
                return name
        return "python"
    if declared not in FRAMEWORKS:
        meant = nearest(declared.lower(), FRAMEWORKS)
        raise PlanError(
            UNSUPPORTED_FRAMEWORK,
            f"framework is {declared!r}; supported are {listed(FRAMEWORKS)}",
            f"Did you mean {meant!r}?" if meant else 'With "python" any function can be the entrypoint.',
        )
    return declared
