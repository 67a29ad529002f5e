"""uv workspaces: the root above a project and its members. Called by plan.packages.local_projects."""

import fnmatch
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..config.toml_tables import TomlTable, read_toml
from ..source import Files
from .project_table import Redirect, read_project_table, uv_redirects


@dataclass(frozen=True)
class Workspace:
    """The directory of the root, the directories of the members by name, and the sources of the root."""

    root: str
    members: Mapping[str, str]
    redirects: Mapping[str, Redirect]


def find_workspace(files: Files, directory: str) -> Workspace | None:
    """Return the workspace of the project in `directory`, or None. Raises PlanError(ConfigInvalid)."""
    for root in ancestors(directory):
        path = posixpath.join(root, "pyproject.toml")
        if path not in files:
            continue
        table = read_toml(files, path)
        members = _members(files, root, table)
        if members is not None and (root == directory or directory in members.values()):
            return Workspace(root, members, uv_redirects(table))
    return None


def ancestors(directory: str) -> Iterator[str]:
    """Yield `directory` and each directory above it, up to the root of the repository."""
    yield directory
    while directory:
        directory = posixpath.dirname(directory)
        yield directory


def _members(files: Files, root: str, table: TomlTable) -> dict[str, str] | None:
    tool = table.table("tool")
    uv = tool.table("uv") if tool else None
    workspace = uv.table("workspace") if uv else None
    if workspace is None:
        return None
    included = workspace.texts_at("members", "packages/*")
    excluded = workspace.texts_at("exclude", "packages/old")
    members = {}
    for path in files:
        directory, name = posixpath.split(path)
        if name != "pyproject.toml" or not (
            directory == root or directory.startswith(f"{root}/" if root else "")
        ):
            continue
        below = directory.removeprefix(root).removeprefix("/")
        if not below or (_matches(below, included) and not _matches(below, excluded)):
            project = read_project_table(files, path)
            if project.name:
                members[project.name] = directory
    return members


def _matches(directory: str, patterns: tuple[str, ...]) -> bool:
    names = directory.split("/")
    return any(_fits(names, posixpath.normpath(pattern).split("/")) for pattern in patterns)


def _fits(names: list[str], parts: list[str]) -> bool:
    """Return whether each name matches its part of the pattern; `**` stands for any number of names."""
    reached = _without_stars({0}, parts)
    for name in names:
        stay = {at for at in reached if parts[at : at + 1] == ["**"]}
        step = {at + 1 for at in reached - stay if at < len(parts) and fnmatch.fnmatchcase(name, parts[at])}
        reached = _without_stars(stay | step, parts)
    return len(parts) in reached


def _without_stars(positions: set[int], parts: list[str]) -> set[int]:
    """Return the positions, and those behind each `**` that follows them."""
    reached = set(positions)
    for at, part in enumerate(parts):
        if at in reached and part == "**":
            reached.add(at + 1)
    return reached
