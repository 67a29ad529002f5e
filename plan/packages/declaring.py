"""Directories that declare dependencies. Called by plan.make and plan.discovery."""

import posixpath

from ..source import Files
from .project_table import read_project_table


def declares(files: Files, directory: str) -> bool:
    """Return whether the directory has a requirements.txt, or a pyproject.toml with at least one dependency.

    Dependencies that only executing the project would tell count, too.
    Raises PlanError(ConfigInvalid).
    """
    pyproject = posixpath.join(directory, "pyproject.toml")
    if posixpath.join(directory, "requirements.txt") in files:
        return True
    if pyproject not in files:
        return False
    project = read_project_table(files, pyproject)
    return bool(project.requirements()) or project.undeclared_reason() is not None


def declaring_directory(files: Files, path: str) -> str:
    """Return the nearest directory of a file below the root that declares dependencies; empty: none does."""
    directory = posixpath.dirname(path)
    while directory and not declares(files, directory):
        directory = posixpath.dirname(directory)
    return directory
