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
    """Return whether a pattern has as many names as `directory`, and each matches."""
    names = directory.split("/")
    for pattern in patterns:
        parts = posixpath.normpath(pattern).split("/")
        if len(parts) == len(names) and all(map(fnmatch.fnmatchcase, names, parts)):
            return True
    return False
