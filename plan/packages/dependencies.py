"""Dependencies of a crew: requirements.txt if it exists, else [project] dependencies of pyproject.toml.

Called by plan.make; the dependencies pod writes the result to files.
"""

import posixpath
from dataclasses import dataclass

from ..config.configuration import Configuration
from ..config.toml_tables import TomlTable, read_toml
from ..errors import DEPENDENCY_RESOLUTION, PlanError
from ..source import Files
from .own_project import build_requires, checked_directory, is_project
from .private_index import check_lines
from .requirements import package_name, read_requirements


@dataclass(frozen=True)
class DependencyDeclaration:
    """Lines for pip; `origin` are their files (empty: nothing is declared).

    `projects` are directories of the tree (`""`: the root) to install as packages; building them needs
    `build_requires`. `private_index`: everything is installed from wheels that were downloaded before.
    """

    origin: str
    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    build_requires: tuple[str, ...] = ()
    private_index: bool = False

    @property
    def packages(self) -> frozenset[str]:
        """The normalized names of the required packages."""
        return frozenset(name for line in self.lines if (name := package_name(line)))

    def files(self) -> dict[str, bytes]:
        """Return the files for pip by name."""
        files = {}
        if self.lines:
            files["requirements.txt"] = _text(self.lines)
        if self.constraints:
            files["constraints.txt"] = _text(self.constraints)
        return files


def read_dependencies(
    files: Files, configuration: Configuration, project: str | None = None, private_index: bool = False
) -> DependencyDeclaration:
    """Return the declaration of the tree; `project` is the directory of the project with the entrypoint.

    Raises PlanError(ConfigInvalid, DependencyResolution).
    """
    projects = _projects(files, configuration, project)
    origins: list[str] = []
    lines: list[str] = []
    constraints: list[str] = []
    for directory in dict.fromkeys(("", *configuration.directories, *projects)):
        requirements = posixpath.join(directory, "requirements.txt")
        pyproject = posixpath.join(directory, "pyproject.toml")
        # pip itself resolves dependencies of an installed project that cannot be read statically.
        readable = private_index or directory not in projects
        if requirements in files:
            requirements_lines = read_requirements(files, requirements)
            origins.append(requirements)
            lines += requirements_lines.lines
            constraints += requirements_lines.constraints
            if requirements_lines.own_project and pyproject in files:
                lines += _project_lines(files, pyproject, readable)
        elif pyproject in files and (declared := _project_lines(files, pyproject, readable)):
            origins.append(pyproject)
            lines += declared
    if configuration.requires:
        origins = origins or [configuration.origin]
        lines += configuration.requires
    tools = build_requires(files, projects) if private_index else ()
    if private_index:
        check_lines((*lines, *constraints, *tools))
    return DependencyDeclaration(
        ", ".join(origins) or (f"the project in {projects[0] or '.'}" if projects else ""),
        tuple(dict.fromkeys(lines)),
        tuple(dict.fromkeys(constraints)),
        projects,
        tools,
        private_index,
    )


def _projects(files: Files, configuration: Configuration, project: str | None) -> tuple[str, ...]:
    named = [path for path in configuration.directories if path and is_project(files, path)]
    projects = [checked_directory(path) for path in named]
    return tuple(dict.fromkeys(projects if project is None else [*projects, project]))


def _project_lines(files: Files, path: str, readable: bool) -> list[str]:
    root = read_toml(files, path)
    project, tool = root.table("project"), root.table("tool")
    if project is None or "dependencies" not in project.values:
        if readable:
            _refuse_undeclared(path, project, tool)
        return []
    lines = project.texts_at("dependencies", "langgraph>=1")
    for line in lines:
        if "\n" in line or "\r" in line or line.lstrip().startswith("-"):
            raise project.error(
                "dependencies", f"has {line!r}, which is not a package", "List packages only."
            )
    return [line.strip() for line in lines]


def _refuse_undeclared(path: str, project: TomlTable | None, tool: TomlTable | None) -> None:
    poetry = tool.values.get("poetry") if tool else None
    if project is not None and "dependencies" in project.values.get("dynamic", ()):
        problem = "[project] declares its dependencies as dynamic"
    elif isinstance(poetry, dict) and poetry.get("dependencies"):
        problem = "the dependencies are only in [tool.poetry.dependencies]"
    else:
        return
    raise PlanError(
        DEPENDENCY_RESOLUTION,
        f"{path}: {problem}; this cannot be read without executing the project",
        "Add a requirements.txt with the pins (pip freeze, poetry export), or use [project] dependencies.",
    )


def _text(lines: tuple[str, ...]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
