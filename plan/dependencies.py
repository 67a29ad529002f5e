"""What a crew depends on: requirements.txt if there is one, else pyproject's [project] dependencies.

Called by plan.make; the result is written out by the dependencies pod.
"""

import posixpath
from dataclasses import dataclass

from plan.configuration import Configuration
from plan.errors import DEPENDENCY_RESOLUTION, PlanError
from plan.requirements import package_name, read_requirements
from plan.source import Files
from plan.tables import Table, read_toml


@dataclass(frozen=True)
class Declaration:
    """Lines for pip, `origin` the file they came from (empty: nothing is declared).

    Excludes and the installation of the crew's own package will stand here too.
    """

    origin: str
    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()

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


def read_dependencies(files: Files, configuration: Configuration) -> Declaration:
    """The declaration of the tree. Raises PlanError(ConfigInvalid, DependencyResolution)."""
    for directory in ("", *configuration.directories):
        requirements = posixpath.join(directory, "requirements.txt")
        project = posixpath.join(directory, "pyproject.toml")
        if requirements in files:
            found = read_requirements(files, requirements)
            lines = list(found.lines)
            if found.own_project and project in files:
                lines += _project(files, project)
            return Declaration(requirements, _merged(lines, configuration.requires), tuple(found.constraints))
        if project in files and (declared := _project(files, project)):
            return Declaration(project, _merged(declared, configuration.requires))
    if configuration.requires:
        return Declaration(configuration.origin, _merged([], configuration.requires))
    return Declaration("")


def _project(files: Files, path: str) -> list[str]:
    root = read_toml(files, path)
    project, tool = root.table("project"), root.table("tool")
    if project is None or "dependencies" not in project.values:
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


def _merged(lines: list[str], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*lines, *more]))


def _text(lines: tuple[str, ...]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
