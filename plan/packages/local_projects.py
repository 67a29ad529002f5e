"""Names that the repository redirects: to its own directories, to git, to a URL.

Called by plan.packages.dependencies. A redirected name never reaches a package index, where anybody may
offer a package of that name.
"""

import posixpath
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import DEPENDENCY_RESOLUTION, PlanError, join_limited
from ..source import Files
from .locks.environment import is_met_anywhere
from .locks.uv_lock import git_reference, is_public_index, text_at, url_reference
from .own_project import checked_directory, is_project
from .project_table import ProjectTable, Redirect, read_project_table
from .requirements import path_of
from .workspace import Workspace, find_workspace

_ARCHIVES = (".whl", ".tar.gz", ".zip")
# A member that no source names. It exists, so no message says where it is named.
_MEMBER = Redirect("", "", {"workspace": True})


class UnpinnedSourceError(PlanError):
    """A requirement from a source that only a lock can pin."""


@dataclass
class ResolvedRequirements:
    """`lines` for pip and `directories` (or archives) of the repository to install with them."""

    lines: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)


def redirects_of(files: Files, directory: str) -> dict[str, Redirect]:
    """Return the redirects of the project in `directory`: its own, those of its workspace, the members."""
    return _redirects(files, directory, find_workspace(files, directory))


def _redirects(files: Files, directory: str, workspace: Workspace | None) -> dict[str, Redirect]:
    redirects = dict(workspace.redirects) if workspace else {}
    project = _project_table(files, directory)
    if project is not None:
        redirects |= project.redirects
    for name in workspace.members if workspace else ():
        redirects.setdefault(name, _MEMBER)
    return redirects


def resolve(
    files: Files, directory: str, requirements: Iterable[Requirement], python: str
) -> ResolvedRequirements:
    """Return the requirements of the project in `directory`, with those of its local projects.

    A local project whose marker does not hold for `python` is left out; a line keeps its marker.
    Raises PlanError(ConfigInvalid, DependencyResolution).
    """
    resolved = ResolvedRequirements()
    pending = [(directory, list(requirements))]
    visited: set[tuple[str, tuple[str, ...]]] = set()
    while pending:
        current, wanted = pending.pop(0)
        workspace = find_workspace(files, current)
        redirects = _redirects(files, current, workspace)
        for requirement in wanted:
            redirect = redirects.get(canonicalize_name(requirement.name))
            redirect = redirect or _redirect_by_url(requirement, current)
            target = None if redirect is None else _target(files, workspace, requirement, redirect)
            if target is None:
                resolved.lines.append(redirected_line(requirement, redirect))
                continue
            key = (target, tuple(sorted(requirement.extras)))
            if key not in visited and target != directory and is_met_anywhere(requirement.marker, python):
                visited.add(key)
                if _is_package(files, target):
                    resolved.directories.append(target)
                origin = redirect.origin if redirect else requirement.name
                pending.append((target, local_requirements(files, target, requirement.extras, origin)))
    return resolved


def local_requirements(
    files: Files, directory: str, extras: Collection[str], origin: str
) -> list[Requirement]:
    """Return what a local project declares; nothing where only executing it would tell.

    Raises PlanError(DependencyResolution) for extras, which `origin` names, of such a project.
    """
    project = _project_table(files, directory)
    if project is not None and (project.declares() or extras):
        return project.requirements(extras)
    if extras:
        names = join_limited(sorted(extras))
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{origin} asks for extras ({names}), which only executing the project would tell",
            "Remove the extras there, and add their packages as dependencies of the crew.",
        )
    return []


def is_static(files: Files, directory: str) -> bool:
    """Return whether the dependencies of a local project can be read without executing it."""
    project = _project_table(files, directory)
    return project is not None and project.is_static()


def _project_table(files: Files, directory: str) -> ProjectTable | None:
    path = posixpath.join(directory, "pyproject.toml")
    return read_project_table(files, path) if path in files else None


def _is_package(files: Files, target: str) -> bool:
    """Return whether uv would install a local project; with `package = false` only what it requires."""
    project = _project_table(files, target)
    tool = project.root.table("tool") if project else None
    uv = tool.table("uv") if tool else None
    return uv is None or uv.values.get("package") is not False


def local_directory(files: Files, base: str, target: str, origin: str) -> str:
    """Return the directory or archive `target` of the repository, which `origin` (in `base`) names.

    Raises PlanError(DependencyResolution) where it is outside of the source or cannot be installed.
    """
    path = posixpath.normpath(posixpath.join(base, target))
    path = "" if path == "." else path
    if target.startswith(("/", "~", "file:")) or path == ".." or path.startswith("../"):
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{origin} names {target}, which is outside of the source",
            "Put it into the repository, and deploy from git with source.git.path.",
        )
    if path in files and path.endswith(_ARCHIVES):
        return checked_directory(path)
    if not is_project(files, path):
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{origin} names {target}, which is not a Python project of the source",
            "It needs a pyproject.toml with [project], or a setup.py; check that the path is committed.",
        )
    return checked_directory(path)


def _redirect_by_url(requirement: Requirement, directory: str) -> Redirect | None:
    """Return where a requirement of the project in `directory` is, if it names a path."""
    path = path_of(requirement)
    if not path:
        return None
    origin = f"{posixpath.join(directory, 'pyproject.toml')}: {requirement.name} @ {requirement.url}"
    return Redirect(origin, directory, {"path": path})


def _target(
    files: Files, workspace: Workspace | None, requirement: Requirement, redirect: Redirect
) -> str | None:
    """Return the directory of a redirected requirement, or None where it comes from elsewhere."""
    values = redirect.values
    if values.get("workspace"):
        member = workspace.members.get(canonicalize_name(requirement.name)) if workspace else None
        if member is None:
            raise PlanError(
                DEPENDENCY_RESOLUTION,
                f"{redirect.origin} is a workspace member, but the source has no such member",
                "Deploy from git, with the member as source.git.path: the workspace is read then.",
            )
        return member
    if "path" not in values:
        return None
    return local_directory(files, redirect.base, str(values["path"]), redirect.origin)


def redirected_line(requirement: Requirement, redirect: Redirect | None) -> str:
    """Return the line of a requirement that comes from an index, git or a URL. Raises PlanError."""
    if redirect is None:
        return str(requirement)
    values = redirect.values
    if "git" in values:
        wanted = (str(values[key]) for key in ("rev", "tag", "branch") if values.get(key))
        url = git_reference(str(values["git"]), next(wanted, "HEAD"), text_at(values, "subdirectory"))
    elif "url" in values:
        url = url_reference(str(values["url"]), text_at(values, "subdirectory"))
    elif is_public_index(str(values.get("index") or values.get("source"))):
        return str(requirement)
    else:
        raise UnpinnedSourceError(
            DEPENDENCY_RESOLUTION,
            f"{redirect.origin} comes from a source that only a lock can pin",
            "Lock it (uv lock, poetry lock), and commit the lock.",
        )
    if any(letter.isspace() for letter in url):
        raise PlanError(DEPENDENCY_RESOLUTION, f"{redirect.origin} has an invalid address", "Correct it.")
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    return f"{requirement.name}{extras} @ {url}{marker}"


def local_names(files: Files, directories: Iterable[str]) -> frozenset[str]:
    """Return the names of the local projects in `directories`, as far as they can be read."""
    tables = (_project_table(files, directory) for directory in directories)
    return frozenset(table.name for table in tables if table and table.name)
