"""Selection and parsing of the configuration file. Called by plan.make.

The first existing one applies, without merging: crew.toml, crewship.toml, langgraph.json, [tool.crewyard],
[tool.crewai] or [tool.llamadeploy] in pyproject.toml. Without any, the entrypoint is main:kickoff.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import CONFIG_INVALID, PlanError, join_limited
from ..file_entrypoint import is_file_entrypoint
from ..packages.system_packages import package_problem
from ..source import Files
from . import artifacts
from .framework import check_framework
from .run_inputs import read_inputs
from .smoke import read_smoke
from .toml_tables import TomlTable, read_toml

CONFIGURATION_FILES = ("crew.toml", "crewship.toml", "langgraph.json", "pyproject.toml")
"""In the order in which one is looked for. A client sends them also where `[build] exclude` matches them."""
DEFAULT_ENTRYPOINT = "main:kickoff"

_DURATION = re.compile(r"(?=.*[1-9])([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# The API refuses to set them; tests/unit/plan/config compares both rules. Runs get none from a Secret.
SERVICE_VARIABLE = re.compile(r"(?:CREWYARD_|PYTHON).*|PATH|HOME")
_MAX_VARIABLES = 128
# The whole plan must fit into a build pod's termination message, of which the kubelet keeps 4096 bytes.
_MAX_VARIABLE_CHARACTERS = 2048
_CREW_KEYS = ("framework", "entrypoint", "python", "smoke")
# The image profile that the base images of an installation correspond to.
_SLIM_PROFILE = "slim"


@dataclass(frozen=True)
class NamedEntrypoint:
    """A crew or graph of a configuration; a run chooses it by `name`. `origin` is its place for messages."""

    name: str
    entrypoint: str
    origin: str


@dataclass(frozen=True)
class Configuration:
    """The author's configuration; None for omitted keys.

    `origin` is the place of the entrypoint for messages. `exclude` are patterns for plan.exclude,
    `artifacts` for the runner; `requires` are packages, and `directories` directories with dependency
    declarations, that the file itself names.
    `name` is the name of the entrypoint in the configuration, `named` are the other crews or graphs there.
    `kind` is "crew" or "flow" where the entrypoint is the only one of that kind. `extras` and `groups` are
    those of pyproject.toml to install, `packages` Debian packages, `dockerfile` the path of the file whose
    image is the base, `dockerfile_lines` instructions for the dependency image. `python_is_preference`:
    another version may take its place. `lock_is_optional`: a lock that does not fit is ignored. `notes` are
    lines for the build log, about what has no effect. `smoke` has input and timeout of the smoke run, as far
    as they are set; None: there is no smoke run. `inputs` is the JSON Schema of the input where it is
    declared.
    """

    origin: str
    framework: str | None = None
    entrypoint: str | None = None
    python: str | None = None
    timeout: str | None = None
    env_required: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    python_origin: str = ""
    python_is_preference: bool = False
    lock_is_optional: bool = False
    kind: str | None = None
    name: str | None = None
    named: tuple[NamedEntrypoint, ...] = ()
    notes: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    dockerfile: str | None = None
    dockerfile_origin: str = ""
    dockerfile_lines: tuple[str, ...] = ()
    smoke: Mapping[str, Any] | None = None
    inputs: Mapping[str, Any] | None = None


def read_configuration(files: Files, crew: str | None) -> Configuration:
    """Return the configuration; the entrypoint is that of `crew` (None: the first). Raises PlanError.

    `crew` is a name of the configuration, or the entrypoint itself.
    """
    if crew is not None and is_entrypoint(crew):
        configuration = with_entrypoint(_read_first(files, None), crew)
    else:
        configuration = _read_first(files, crew)
    names = configuration.env_required
    reserved = tuple(name for name in names if SERVICE_VARIABLE.fullmatch(name))
    note = f"{join_limited(reserved)} cannot be variables of a project, and are not required"
    return replace(
        configuration,
        artifacts=artifacts.read_include(files),
        env_required=tuple(name for name in names if name not in reserved),
        notes=(*configuration.notes, *([note] if reserved else [])),
    )


def is_entrypoint(crew: str) -> bool:
    """Return whether a requested crew is the entrypoint itself: `module:object` or a file, never a name."""
    return ":" in crew or is_file_entrypoint(crew)


def with_entrypoint(configuration: Configuration, entrypoint: str) -> Configuration:
    """Return the configuration for this entrypoint; the configured one keeps its name, for runs to choose.

    What belongs to the configured entrypoint alone does not apply: framework, smoke run and inputs.
    """
    named = configuration.named
    if configuration.name is not None:
        configured = configuration.entrypoint or DEFAULT_ENTRYPOINT
        named = (NamedEntrypoint(configuration.name, configured, configuration.origin), *named)
    return replace(
        configuration,
        origin="the requested crew",
        entrypoint=entrypoint,
        framework=None,
        kind=None,
        name=None,
        named=named,
        smoke=None,
        inputs=None,
    )


def _read_first(files: Files, crew: str | None) -> Configuration:
    if "crew.toml" in files and not artifacts.has_only_artifacts(own := read_toml(files, "crew.toml")):
        return _read_tables(own, crew)
    if "crewship.toml" in files:
        return _read_tables(read_toml(files, "crewship.toml"), crew, foreign=True)
    if "langgraph.json" in files:
        from .langgraph import read_langgraph  # most trees have none

        return read_langgraph(files, crew)
    if "pyproject.toml" in files:
        tool = read_toml(files, "pyproject.toml").table("tool")
        table = tool.table("crewyard") if tool else None
        if table and not artifacts.has_only_artifacts(table):
            return _read_tables(table, crew)
        crewai_table = tool.table("crewai") if tool else None
        if crewai_table:
            from .crewai import read_crewai

            return read_crewai(crewai_table, crew)
        llama_table = tool.table("llamadeploy") if tool else None
        if llama_table and (workflows := llama_table.table("workflows")):
            from .llama_agents import read_llama_agents

            return read_llama_agents(llama_table, workflows, crew)
    if crew is not None:
        raise PlanError(
            CONFIG_INVALID,
            f"crew {crew!r} is requested, but there is no configuration file",
            _agent_directory_hint(files, crew)
            or f"Add a crew.toml with [deployments.{crew}], or omit the crew's name.",
        )
    return Configuration(origin="the default without a configuration file")


def _agent_directory_hint(files: Files, crew: str) -> str:
    """Return how to name an agent of the Agent Development Kit, which that names by its directory."""
    directory = crew.rstrip("/")
    if b"root_agent" not in files.get(f"{directory}/agent.py", b""):
        return ""
    return f"{directory} has an agent; name it as {directory.replace('/', '.')}.agent:root_agent."


def _read_tables(root: TomlTable, crew: str | None, foreign: bool = False) -> Configuration:
    """Return the configuration in these tables; `foreign`: unknown keys are noted, not refused."""
    name, chosen = _select_crew(root, crew)
    framework = chosen.text_at("framework", "langgraph") if chosen else None
    if chosen:
        check_framework(framework, chosen.location("framework"))
    build, run = root.table("build"), root.table("run")
    unknown = _check_keys(root, foreign, "deployment", "deployments", "build", "run", artifacts.TABLE)
    unknown += _check_keys(build, foreign, "exclude", "extras", "groups", "packages", "dockerfile")
    unknown += _check_keys(run, foreign, "timeout", "env_required", "inputs")
    unknown += _check_crew_keys(chosen, foreign)
    if foreign and chosen:
        _check_profile(chosen)
    python = chosen.text_at("python", "3.11") if chosen else None
    named, notes, unknown_of_others = _named_crews(root, name, python, foreign)
    if unknown := [*unknown, *unknown_of_others]:
        notes = (f"{root.file}: ignored keys: {join_limited(unknown)}", *notes)
    return Configuration(
        origin=_origin(chosen) if chosen else f"the default of {root.file}",
        framework=framework,
        entrypoint=chosen.text_at("entrypoint", "pkg.crew:MyCrew") if chosen else None,
        python=python,
        timeout=_timeout(run) if run else None,
        env_required=_required_variables(run) if run else (),
        inputs=read_inputs(run) if run else None,
        exclude=build.texts_at("exclude", "tests") if build else (),
        extras=build.texts_at("extras", "pdf") if build else (),
        groups=build.texts_at("groups", "tools") if build else (),
        packages=_system_packages(build) if build else (),
        dockerfile=build.text_at("dockerfile", "Dockerfile") if build else None,
        dockerfile_origin=build.location("dockerfile") if build else "",
        smoke=read_smoke(chosen, _timeout) if chosen else None,
        python_origin=chosen.location("python") if chosen else "",
        name=name,
        named=named,
        notes=notes,
    )


def _origin(table: TomlTable) -> str:
    return table.location("entrypoint") if "entrypoint" in table.values else f"the default of {table.file}"


def _named_crews(
    root: TomlTable, chosen: str | None, python: str | None, foreign: bool
) -> tuple[tuple[NamedEntrypoint, ...], tuple[str, ...], list[str]]:
    """Return the other crews of [deployments], notes on those that need another image, and unknown keys."""
    deployments = root.table("deployments")
    named, notes, unknown = [], [], []
    for name in deployments.values if deployments else ():
        table = deployments.table(name) if deployments and name != chosen else None
        if table is None:
            continue
        unknown += _check_crew_keys(table, foreign)
        check_framework(table.text_at("framework", "langgraph"), table.location("framework"))
        if table.text_at("python", "3.11") not in (None, python):
            notes.append(f"{table.location('python')} differs from that of {chosen}: {name} is left out")
            continue
        try:
            _check_profile(table)
        except PlanError as error:
            notes.append(f"{error.message}: {name} is left out")
            continue
        entrypoint = table.text_at("entrypoint", "pkg.crew:MyCrew") or DEFAULT_ENTRYPOINT
        named.append(NamedEntrypoint(name, entrypoint, _origin(table)))
    return tuple(named), tuple(notes), unknown


def _check_crew_keys(table: TomlTable | None, foreign: bool) -> list[str]:
    """Return the unknown keys of the table of a crew. Raises as `_check_keys` does."""
    return _check_keys(table, foreign, *_CREW_KEYS, *(("profile",) if foreign else ()))


def _check_keys(table: TomlTable | None, foreign: bool, *known: str) -> list[str]:
    """Return the unknown keys of a foreign table. Raises PlanError(ConfigInvalid) for those of our own."""
    if table is None:
        return []
    if not foreign:
        table.allow_only(*known)
    return table.unknown(*known)


def _check_profile(table: TomlTable) -> None:
    profile = table.text_at("profile", _SLIM_PROFILE)
    if profile not in (None, _SLIM_PROFILE):
        raise table.error(
            "profile",
            f"is {profile!r}, an image with more than Python; crews are built on the plain images of this "
            "installation",
            f'Write profile = "{_SLIM_PROFILE}"; the operator can offer another base image '
            "(CREWYARD_BASE_IMAGES).",
        )


def _select_crew(root: TomlTable, crew: str | None) -> tuple[str | None, TomlTable | None]:
    """Return name and table of the crew, the first without `crew`; [deployment] has no name."""
    deployment, deployments = root.table("deployment"), root.table("deployments")
    if deployments is None:
        if crew is not None:
            raise PlanError(
                CONFIG_INVALID,
                f"{root.file} has no [deployments.{crew}]",
                "Add that table, or omit the crew's name.",
            )
        return None, deployment
    if deployment is not None:
        raise root.error("deployments", "and deployment are mutually exclusive", "Keep one of the two.")
    names = tuple(deployments.values)
    if crew is None and names:
        crew = names[0]
    if crew is None or crew not in names:
        wanted = "crew in [deployments]" if crew is None else f"[deployments.{crew}]"
        raise PlanError(
            CONFIG_INVALID,
            f"{root.file} has no {wanted}; it has {join_limited(names) or 'none'}",
            "Set spec.source.git.crew of the Project to one of those, or deploy with --crew NAME.",
        )
    return crew, deployments.table(crew)


def _system_packages(build: TomlTable) -> tuple[str, ...]:
    packages = build.texts_at("packages", "ffmpeg")
    if problem := package_problem(packages):
        raise build.error("packages", problem, 'For example: packages = ["ffmpeg", "libpq5"].')
    return packages


def _timeout(run: TomlTable) -> str | None:
    timeout = run.text_at("timeout", "1h")
    if timeout is not None and not _DURATION.fullmatch(timeout):
        raise run.error("timeout", f"is not a duration: {timeout!r}", "Write it like 90s, 30m or 1h30m.")
    return timeout


def _required_variables(run: TomlTable) -> tuple[str, ...]:
    names = run.texts_at("env_required", "OPENAI_API_KEY")
    return checked_variables(names, lambda problem, hint: run.error("env_required", problem, hint))


def checked_variables(names: tuple[str, ...], make_error: Callable[[str, str], PlanError]) -> tuple[str, ...]:
    """Return `names` without duplicates. Raises `make_error(problem, hint)` for invalid or too many names."""
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise make_error(f"has {name[:200]!r}, which is not a valid variable name", "Use A-Z, 0-9 and _.")
    if len(names) > _MAX_VARIABLES:
        raise make_error(f"has {len(names)} names", f"Use at most {_MAX_VARIABLES}.")
    if (characters := sum(map(len, names))) > _MAX_VARIABLE_CHARACTERS:
        hint = (
            f"Use at most {_MAX_VARIABLE_CHARACTERS}: list only variables that every run needs, "
            "or use shorter names."
        )
        raise make_error(f"has names of {characters} characters in total", hint)
    return tuple(dict.fromkeys(names))
