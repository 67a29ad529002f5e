"""The entrypoint of a source whose configuration names none. Called by plan.make."""

import ast
import posixpath
import shlex
from collections.abc import Callable, Mapping

from ..bindings import parse_module
from ..config.configuration import Configuration
from ..config.toml_tables import read_toml
from ..entrypoint import EntrypointLocation
from ..errors import ENTRYPOINT_NOT_FOUND, PlanError, join_limited
from ..file_entrypoint import PATH_CHARACTERS
from ..packages.declaring import declares, declaring_directory
from ..source import Files
from .candidates import ALL_KINDS, SourceScan, scan_source
from .command_lines import command_lines
from .module_objects import AGENT, CREW, FLOW, GRAPH, WORKFLOW
from .served import served_entrypoints

_KINDS_BY_FRAMEWORK: Mapping[str, tuple[str, ...]] = {
    "crewai": (FLOW, CREW),
    "langgraph": (GRAPH,),
    "python": (WORKFLOW, AGENT),
}
# Commands of pyproject.toml that the command `crewai run` calls.
_CREWAI_COMMANDS = ("kickoff", "run_crew")


def discover_entrypoint(
    files: Files,
    configuration: Configuration,
    python: str,
    find: Callable[[str], EntrypointLocation],
    default_error: PlanError | None,
) -> str:
    """Return the entrypoint of the only crew, flow, graph, workflow or agent at the most usual place.

    Else what `crewai run` calls, else the only script at a usual place or of an agent, else the only class
    with a method that makes a crew, the only function that builds a graph, the only class of a workflow, or
    the only function that builds an agent. `python` is the crew's version. `find` returns the location of an
    entrypoint and raises PlanError where the plan would refuse it. Raises PlanError(EntrypointNotFound): with
    the candidates if there are several; if there is none, `default_error` (the reason why the default
    entrypoint does not apply) with the next step.
    """
    scan = scan_source(files, python, _kinds(configuration))
    accepted = [
        candidate for candidate in scan.candidates if _is_accepted(candidate.entrypoint, find, candidate.path)
    ]
    best = [candidate for candidate in accepted if candidate.rank == accepted[0].rank]
    names = [candidate.entrypoint for candidate in best]
    if len(names) == 1:
        return names[0]
    command = _crewai_command(files, [candidate.path for candidate in best])
    if command and _is_accepted(command, find):
        return command
    if names:
        raise PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"the configuration names no entrypoint, and there are several: {join_limited(names)}",
            f"Name one: {_ways_to_deploy(names[0])}",
        )
    scripts = scan.usual_scripts or _without_servers(scan)
    if len(scripts) == 1 and _is_accepted(scripts[0], find):
        return scripts[0]
    for only in (scan.crews, scan.builders, scan.workflows, scan.agent_builders):
        if len(only) == 1 and _is_accepted(only[0], find):
            return only[0]
    error = default_error or _kind_missing(configuration)
    raise PlanError(
        error.reason,
        error.message,
        _script_hint(files, scan, find)
        or _workflow_hint(scan)
        or _command_hint(files, python, find)
        or _server_hint(files, scan, python, find)
        or error.hint,
    )


def _ways_to_deploy(entrypoint: str) -> str:
    """Return how to deploy this entrypoint: without a change of the source, and with one."""
    return (
        f"crewyard deploy --crew {shlex.quote(entrypoint)}, spec.source.git.crew of the Project, "
        f'or in crew.toml [deployment] entrypoint = "{entrypoint}".'
    )


def _without_servers(scan: SourceScan) -> tuple[str, ...]:
    """Return the only script of an agent in the root, unless it starts a server."""
    return (
        scan.agent_scripts if len(scan.agent_scripts) == 1 and scan.agent_scripts[0] in scan.scripts else ()
    )


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


def _is_accepted(entrypoint: str, find: Callable[[str], EntrypointLocation], path: str = "") -> bool:
    """Return whether the plan accepts the entrypoint, and finds it in `path` if that is given."""
    try:
        return find(entrypoint).path == path or not path
    except PlanError:
        return False


def _crewai_command(files: Files, candidates: list[str]) -> str | None:
    """Return what `crewai run` calls in the root, or in the only project of these files below it."""
    try:
        projects = set() if declares(files, "") else {declaring_directory(files, path) for path in candidates}
    except PlanError:
        projects = set()  # reported where the dependencies are read
    commands = _commands(files, projects.pop() if len(projects) == 1 else "")
    return next((commands[name] for name in _CREWAI_COMMANDS if name in commands), None)


def _commands(files: Files, directory: str = "") -> dict[str, str]:
    """Return the commands of [project.scripts] and [tool.poetry.scripts] with their functions."""
    path = posixpath.join(directory, "pyproject.toml")
    if path not in files:
        return {}
    root = read_toml(files, path)
    tool = root.table("tool")
    found: dict[str, str] = {}
    for owner in (tool.table("poetry") if tool else None, root.table("project")):
        scripts = owner.table("scripts") if owner else None
        declared = scripts.values if scripts else {}
        found |= {name: function for name, function in declared.items() if isinstance(function, str)}
    return found


def _defines_command(path: str, data: bytes, python: str, name: str) -> bool:
    """Return whether the module defines a function or a command line of this name."""
    tree = parse_module(path, data, python)
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return tree is not None and (
        name in command_lines(tree)
        or any(isinstance(node, functions) and node.name == name for node in tree.body)
    )


def _command_hint(files: Files, python: str, find: Callable[[str], EntrypointLocation]) -> str:
    for name, function in _commands(files).items():
        if not _is_accepted(function, find):
            continue
        path = find(function).path
        if _defines_command(path, files[path], python, function.partition(":")[2]):
            return (
                f"The command {name} of pyproject.toml is {function}; to run it: {_ways_to_deploy(function)}"
            )
    return ""


def _workflow_hint(scan: SourceScan) -> str:
    if not scan.workflows:
        return ""
    named = join_limited(scan.workflows)
    return (
        f"There are several classes of workflows, {named}; to run one: {_ways_to_deploy(scan.workflows[0])}"
    )


def _server_hint(
    files: Files, scan: SourceScan, python: str, find: Callable[[str], EntrypointLocation]
) -> str:
    if not scan.servers:
        return ""
    path = scan.servers[0]
    serves = f"{path} serves a page or an API until it is stopped, and a run has to end."
    called = [each for each in served_entrypoints(files, path, python) if _is_accepted(each, find)]
    if not called:
        wanted = "Name the function, crew, graph or agent that it calls"
        return f"{serves} {wanted}: {_ways_to_deploy('module:object')}"
    ways = _ways_to_deploy(called[0])
    return f"{serves} It calls {join_limited(called)}; to run {'one' if len(called) > 1 else 'that'}: {ways}"


def _script_hint(files: Files, scan: SourceScan, find: Callable[[str], EntrypointLocation]) -> str:
    paths = [path for path in scan.scripts if _is_accepted(path, find)]
    if not paths and scan.scripts:
        path = scan.scripts[0]
        return f"{path} is a script, but the path of an entrypoint has only {PATH_CHARACTERS}; rename it."
    if not paths:
        return ""
    path = paths[0]
    directory = declaring_directory(files, path)
    if directory and declares(files, ""):
        # Deployed from the root it would get the dependencies of the root.
        return (
            f"{path} is a script with dependencies of its own; deploy its directory: "
            f"crewyard deploy {shlex.quote(directory)}, or spec.source.git.path of the Project."
        )
    if len(paths) > 1:
        return f"{join_limited(paths)} are scripts; to run one: {_ways_to_deploy(path)}"
    return f"{path} is a script; to run it as one: {_ways_to_deploy(path)}"
