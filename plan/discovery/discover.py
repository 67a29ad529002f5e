"""The entrypoint of a source whose configuration names none. Called by plan.make."""

from collections.abc import Callable, Mapping

from ..config.configuration import Configuration
from ..entrypoint import EntrypointLocation
from ..errors import ENTRYPOINT_NOT_FOUND, PlanError, join_limited
from ..source import Files
from .candidates import ALL_KINDS, EntrypointCandidate, SourceScan, scan_source
from .module_objects import CREW, FLOW, GRAPH

_KINDS_BY_FRAMEWORK: Mapping[str, tuple[str, ...]] = {
    "crewai": (FLOW, CREW),
    "langgraph": (GRAPH,),
    "python": (),
}


def discover_entrypoint(
    files: Files,
    configuration: Configuration,
    find: Callable[[str], EntrypointLocation],
    default_error: PlanError | None,
) -> str:
    """Return the entrypoint of the only crew, flow or graph at the most usual place.

    `find` returns the location of an entrypoint and raises PlanError where the plan would refuse it. Raises
    PlanError(EntrypointNotFound): with the candidates if there are several; if there is none,
    `default_error` (the reason why the default entrypoint does not apply) with the next step.
    """
    scan = scan_source(files, _kinds(configuration))
    accepted = [candidate for candidate in scan.candidates if _is_accepted(candidate, find)]
    names = [candidate.entrypoint for candidate in accepted if candidate.rank == accepted[0].rank]
    if len(names) == 1:
        return names[0]
    if names:
        raise PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"the configuration names no entrypoint, and there are several: {join_limited(names)}",
            f'Name one in crew.toml: [deployment] entrypoint = "{names[0]}".',
        )
    error = default_error or _kind_missing(configuration)
    raise PlanError(error.reason, error.message, _script_hint(scan) or error.hint)


def _kinds(configuration: Configuration) -> tuple[str, ...]:
    if configuration.kind is not None:
        return (configuration.kind,)
    framework = configuration.framework
    return ALL_KINDS if framework is None else _KINDS_BY_FRAMEWORK[framework]


def _kind_missing(configuration: Configuration) -> PlanError:
    expected = "decorated with @CrewBase" if configuration.kind == CREW else "derived from Flow"
    return PlanError(
        ENTRYPOINT_NOT_FOUND,
        f"{configuration.origin} requires a class {expected}; none was found in the sources",
        'Add a crew.toml with [deployment] and entrypoint = "module:object".',
    )


def _is_accepted(candidate: EntrypointCandidate, find: Callable[[str], EntrypointLocation]) -> bool:
    try:
        return find(candidate.entrypoint).path == candidate.path
    except PlanError:
        return False


def _script_hint(scan: SourceScan) -> str:
    if not scan.scripts:
        return ""
    path = scan.scripts[0]
    return f'{path} is a script; to run it as one, add crew.toml with [deployment] entrypoint = "{path}".'
