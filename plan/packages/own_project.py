"""Detection of the crew's own package, which must be installed before import. Called by plan.entrypoint.

Decides by file names and a few keys; only the builder executes the project.
"""

import posixpath
import re
import tomllib
from collections.abc import Container, Iterable

from ..config.toml_tables import read_toml
from ..errors import CONFIG_INVALID, PlanError
from ..source import Files, text_of

# Part of a command line of the builder.
_SAFE_PATH = re.compile(r"[A-Za-z0-9._+/-]*")
_SECTIONS = re.compile(r"^\[(metadata|options)\]", re.MULTILINE)
_INSTALLABLE = ("setup.py", "pyproject.toml")
# setuptools-scm, flit-scm, hatch-vcs and others.
_VERSION_TOOLS = re.compile(rb"scm|vcs|pbr", re.IGNORECASE)


def is_project(files: Files, directory: str) -> bool:
    """Return whether `directory` (`""`: the root) has a project that pip could install.

    A package is never a project: its modules are imported in place.
    """
    if directory and posixpath.join(directory, "__init__.py") in files:
        return False
    if posixpath.join(directory, "setup.py") in files:
        return True
    pyproject = posixpath.join(directory, "pyproject.toml")
    if pyproject in files:
        try:
            values = tomllib.loads(text_of(files, pyproject))
        except (ValueError, RecursionError):
            return False  # reported where the file is needed
        if "project" in values or "build-system" in values:
            return True
    setup = posixpath.join(directory, "setup.cfg")
    return setup in files and bool(_SECTIONS.search(text_of(files, setup)))


def lacks_build_file(names: Container[str]) -> bool:
    """Return whether a project with these files in its directory has only a setup.cfg, which pip refuses."""
    return not any(name in names for name in _INSTALLABLE)


def find_project(files: Files, module: str) -> tuple[str, str] | None:
    """Return the file of `module` in the tree and the nearest project directory above it, or None.

    Prefers the least deep file; ignores files in packages, because their modules have longer names. Raises
    PlanError(ConfigInvalid) for a directory name that is unsafe on the builder's command line.
    """
    module_path = module.replace(".", "/")
    suffixes = (f"/{module_path}.py", f"/{module_path}/__init__.py")
    matches = sorted(
        (path for path in files if path.endswith(suffixes)), key=lambda path: (path.count("/"), path)
    )
    for path in matches:
        directory = path.removesuffix(suffixes[0]).removesuffix(suffixes[1])
        if posixpath.join(directory, "__init__.py") in files:
            continue
        while True:
            if is_project(files, directory):
                return path, checked_directory(directory)
            if not directory:
                break
            directory = posixpath.dirname(directory)
    return None


def checked_directory(directory: str) -> str:
    """Return `directory` unchanged. Raises PlanError(ConfigInvalid) for characters unsafe in commands."""
    if not _SAFE_PATH.fullmatch(directory):
        raise PlanError(
            CONFIG_INVALID,
            f"the project in {directory!r} must be installed, but its name has unsupported characters",
            "Use letters, digits, '.', '_', '+' and '-' in that directory's name.",
        )
    return directory


def build_requires(files: Files, projects: Iterable[str]) -> tuple[str, ...]:
    """Return the build requirements of `projects`, from their pyproject.toml or pip's defaults."""
    requirements: list[str] = []
    for directory in projects:
        if directory in files:
            continue  # an archive: a wheel needs no tools, those of a source archive are not known
        pyproject = posixpath.join(directory, "pyproject.toml")
        build_system = read_toml(files, pyproject).table("build-system") if pyproject in files else None
        requirements += build_system.texts_at("requires", "hatchling") if build_system else ()
        if build_system is None or "build-backend" not in build_system.values:
            requirements += ("setuptools", "wheel")  # setuptools needed wheel before version 70
    return tuple(dict.fromkeys(requirements))


def may_read_git(files: Files, projects: Iterable[str]) -> bool:
    """Return whether the version of one of `projects` may come from git. Of an archive this is not known."""
    names = (*_INSTALLABLE, "setup.cfg")
    return any(
        directory in files
        or any(_VERSION_TOOLS.search(files.get(posixpath.join(directory, name), b"")) for name in names)
        for directory in projects
    )
