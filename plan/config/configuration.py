"""Which configuration file holds and what it says.

The first that exists, never merged: crew.toml, crewship.toml, langgraph.json, [tool.crewyard] or
[tool.crewai] in pyproject.toml; without any, main:kickoff. Called by plan.make.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import CONFIG_INVALID, PlanError, listed
from ..source import Files
from .toml_tables import Table, read_toml

DEFAULT_ENTRYPOINT = "main:kickoff"

_DURATION = re.compile(r"(?=.*[1-9])([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_VARIABLES = 128
# All of a plan has to fit into a build pod's last words, of which the kubelet keeps 4096 bytes.
_VARIABLES_LETTERS = 2048
_CREW_KEYS = ("framework", "entrypoint", "python")


@dataclass(frozen=True)
class Configuration:
    """What the author declared; None where the file is silent.

    `origin` names the place of the entrypoint for messages. `exclude` holds patterns for
    plan.exclude; `requires` are packages and `directories` places of dependency
    declarations that the file itself names.
    """

    origin: str
    framework: str | None = None
    entrypoint: str | None = None
    python: str | None = None
    timeout: str | None = None
    env_required: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    python_origin: str = ""


def read_configuration(files: Files, crew: str | None) -> Configuration:
    """The configuration of `crew` (None: the only one). Raises PlanError(ConfigInvalid)."""
    for name in ("crew.toml", "crewship.toml"):
        if name in files:
            return _own(read_toml(files, name), crew)
    if "langgraph.json" in files:
        from .langgraph import read_langgraph  # most trees have none

        return read_langgraph(files, crew)
    if "pyproject.toml" in files:
        tool = read_toml(files, "pyproject.toml").table("tool")
        own = tool.table("crewyard") if tool else None
        if own:
            return _own(own, crew)
        foreign = tool.table("crewai") if tool else None
        if foreign:
            from .crewai import read_crewai

            return read_crewai(files, foreign, crew)
    if crew is not None:
        raise PlanError(
            CONFIG_INVALID,
            f"crew {crew!r} is asked for, but there is no configuration file",
            f"Add a crew.toml with [deployments.{crew}], or leave the crew's name out.",
        )
    return Configuration(origin="the default, since there is no configuration file")


def _own(root: Table, crew: str | None) -> Configuration:
    root.only("deployment", "deployments", "build", "run")
    chosen = _chosen(root, crew)
    build, run = root.table("build"), root.table("run")
    if build:
        build.only("exclude")
    timeout: str | None = None
    required: tuple[str, ...] = ()
    if run:
        run.only("timeout", "env_required")
        timeout, required = _timeout(run), _required(run)
    exclude = build.words("exclude", "tests") if build else ()
    if chosen is None:
        return Configuration(f"the default of {root.file}", None, None, None, timeout, required, exclude)
    chosen.only(*_CREW_KEYS)
    return Configuration(
        origin=chosen.at("entrypoint") if "entrypoint" in chosen.values else f"the default of {root.file}",
        framework=chosen.word("framework", "langgraph"),
        entrypoint=chosen.word("entrypoint", "pkg.crew:MyCrew"),
        python=chosen.word("python", "3.11"),
        timeout=timeout,
        env_required=required,
        exclude=exclude,
        python_origin=chosen.at("python"),
    )


def _chosen(root: Table, crew: str | None) -> Table | None:
    single, several = root.table("deployment"), root.table("deployments")
    if several is None:
        if crew is not None:
            raise PlanError(
                CONFIG_INVALID,
                f"{root.file} has no [deployments.{crew}]",
                "Add that table, or leave the crew's name out.",
            )
        return single
    if single is not None:
        raise root.wrong("deployments", "and deployment exclude each other", "Keep one of the two.")
    names = tuple(several.values)
    if crew is None and len(names) == 1:
        crew = names[0]
    if crew is None:
        raise several.wrong("*", f"has several crews: {listed(names)}", "Name one as the source's crew.")
    if crew not in names:
        raise PlanError(
            CONFIG_INVALID,
            f"{root.file} has no [deployments.{crew}]; it has {listed(names) or 'none'}",
            "Name one of those as the source's crew.",
        )
    return several.table(crew)


def _timeout(run: Table) -> str | None:
    timeout = run.word("timeout", "1h")
    if timeout is not None and not _DURATION.fullmatch(timeout):
        raise run.wrong("timeout", f"is no duration: {timeout!r}", "Write it like 90s, 30m or 1h30m.")
    return timeout


def _required(run: Table) -> tuple[str, ...]:
    names = run.words("env_required", "OPENAI_API_KEY")
    return checked_variables(names, lambda problem, hint: run.wrong("env_required", problem, hint))


def checked_variables(names: tuple[str, ...], wrong: Callable[[str, str], PlanError]) -> tuple[str, ...]:
    """`names`, each once. Raises what `wrong` makes of problem and hint where one is no variable's name."""
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise wrong(f"has {name[:200]!r}, which is no variable's name", "Use A-Z, 0-9 and _.")
    if len(names) > _VARIABLES:
        raise wrong(f"has {len(names)} names", f"Name at most {_VARIABLES}.")
    if (letters := sum(map(len, names))) > _VARIABLES_LETTERS:
        hint = (
            f"At most {_VARIABLES_LETTERS}: name those without which no run can start, or use shorter names."
        )
        raise wrong(f"has names of {letters} letters in all", hint)
    return tuple(dict.fromkeys(names))
