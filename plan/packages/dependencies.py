"""What a crew depends on: requirements.txt if there is one, else pyproject's [project] dependencies.

Called by plan.make; the result is written out by the dependencies pod.
"""

import posixpath
from dataclasses import dataclass

from ..config.configuration import Configuration
from ..config.toml_tables import Table, read_toml
from ..errors import DEPENDENCY_RESOLUTION, PlanError
from ..source import Files
from .own_project import build_requires, checked_directory, is_project
from .private_index import check_lines
from .requirements import package_name, read_requirements


@dataclass(frozen=True)
class Declaration:
    """Lines for pip, `origin` the file they came from (empty: nothing is declared).

    `projects` are directories of the tree (`""`: the whole) that are installed themselves, for which
    `build_requires` are needed. `private_index`: all of it comes as wheels that were downloaded before.
    """

    origin: str
    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    build_requires: tuple[str, ...] = ()
    private_index: bool = False

    @property
    def packages(self) -> frozenset[str]:
        """The names of what is required, in their normal form."""
        return frozenset(name for line in self.lines if (name := package_name(line)))

    def files(self) -> dict[str, bytes]:
        """What the installation reads, by name."""
        written = {}
        if self.lines:
            written["requirements.txt"] = _text(self.lines)
        if self.constraints:
            written["constraints.txt"] = _text(self.constraints)
        return written


def read_dependencies(
    files: Files, configuration: Configuration, project: str | None = None, private_index: bool = False
) -> Declaration:
    """The declaration of the tree; `project` is the directory of the one that the entrypoint is in.

    Raises PlanError(ConfigInvalid, DependencyResolution).
    """
    projects = _projects(files, configuration, project)
    origins: list[str] = []
    lines: list[str] = []
    constraints: list[str] = []
    for directory in dict.fromkeys(("", *configuration.directories, *projects)):
        requirements = posixpath.join(directory, "requirements.txt")
        pyproject = posixpath.join(directory, "pyproject.toml")
        # What an installed project declares in a way that cannot be read, pip finds out while it builds it.
        readable = private_index or directory not in projects
        if requirements in files:
            found = read_requirements(files, requirements)
            origins.append(requirements)
            lines += found.lines
            constraints += found.constraints
            if found.own_project and pyproject in files:
                lines += _project(files, pyproject, readable)
        elif pyproject in files and (declared := _project(files, pyproject, readable)):
            origins.append(pyproject)
            lines += declared
    if configuration.requires:
        origins = origins or [configuration.origin]
        lines += configuration.requires
    tools = build_requires(files, projects) if private_index else ()
    if private_index:
        check_lines((*lines, *constraints, *tools))
    return Declaration(
        ", ".join(origins) or (f"the project in {projects[0] or '.'}" if projects else ""),
        tuple(dict.fromkeys(lines)),
        tuple(dict.fromkeys(constraints)),
        projects,
        tools,
        private_index,
    )


def _projects(files: Files, configuration: Configuration, project: str | None) -> tuple[str, ...]:
    named = [path for path in configuration.directories if path and is_project(files, path)]
    found = [checked_directory(path) for path in named]
    return tuple(dict.fromkeys(found if project is None else [*found, project]))


def _project(files: Files, path: str, readable: bool) -> list[str]:
    root = read_toml(files, path)
    project, tool = root.table("project"), root.table("tool")
    if project is None or "dependencies" not in project.values:
        if readable:
            _refuse_elsewhere(path, project, tool)
        return []
    lines = project.words("dependencies", "langgraph>=1")
    for line in lines:
        if "\n" in line or "\r" in line or line.lstrip().startswith("-"):
            raise project.wrong("dependencies", f"has {line!r}, which is no package", "Name packages only.")
    return [line.strip() for line in lines]


def _refuse_elsewhere(path: str, project: Table | None, tool: Table | None) -> None:
    poetry = tool.values.get("poetry") if tool else None
    if project is not None and "dependencies" in project.values.get("dynamic", ()):
        problem = "[project] declares its dependencies as dynamic"
    elif isinstance(poetry, dict) and poetry.get("dependencies"):
        problem = "the dependencies stand in [tool.poetry.dependencies] only"
    else:
        return
    raise PlanError(
        DEPENDENCY_RESOLUTION,
        f"{path}: {problem}, which cannot be read without executing the project",
        "Add a requirements.txt with the pins (pip freeze, poetry export), or use [project] dependencies.",
    )


def _text(lines: tuple[str, ...]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
