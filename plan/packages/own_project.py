"""The crew's own package: a project that must be installed to be imported. Called by plan.entrypoint.

It is told from the files' names and a few keys; only the builder ever executes it.
"""

import posixpath
import re
import tomllib
from collections.abc import Iterable

from ..config.toml_tables import read_toml
from ..errors import CONFIG_INVALID, PlanError
from ..source import Files, text_of

# It becomes part of a command line of the builder.
_PLAIN = re.compile(r"[A-Za-z0-9._+/-]*")
_SECTIONS = re.compile(r"^\[(metadata|options)\]", re.MULTILINE)
_INSTALLABLE = ("setup.py", "pyproject.toml")


def is_project(files: Files, directory: str) -> bool:
    """Whether `directory` (`""`: the whole tree) holds a project that pip could install.

    A package is none, whatever lies in it: its modules are imported from where they are.
    """
    if directory and posixpath.join(directory, "__init__.py") in files:
        return False
    if posixpath.join(directory, "setup.py") in files:
        return True
    pyproject = posixpath.join(directory, "pyproject.toml")
    if pyproject in files:
        try:
            values = tomllib.loads(text_of(files, pyproject))
        except (tomllib.TOMLDecodeError, RecursionError):
            return False  # whoever needs it will say what is wrong with it
        if "project" in values or "build-system" in values:
            return True
    setup = posixpath.join(directory, "setup.cfg")
    return setup in files and bool(_SECTIONS.search(text_of(files, setup)))


def lacks_build_file(files: Files, directory: str) -> bool:
    """Whether the project has a setup.cfg alone, which pip refuses without a file beside it."""
    return not any(posixpath.join(directory, name) in files for name in _INSTALLABLE)


def find_project(files: Files, module: str) -> tuple[str, str] | None:
    """The file of `module` somewhere in the tree, and the nearest directory above it that is a project.

    Of several, the one least deep; none that lies in a package, whose modules have longer names.
    None where there is none. Raises PlanError(ConfigInvalid) for a directory whose name the builder
    cannot be told.
    """
    place = module.replace(".", "/")
    ends = (f"/{place}.py", f"/{place}/__init__.py")
    found = sorted((path for path in files if path.endswith(ends)), key=lambda path: (path.count("/"), path))
    for path in found:
        directory = path.removesuffix(ends[0]) if path.endswith(ends[0]) else path.removesuffix(ends[1])
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
    """`directory` as it is. Raises PlanError(ConfigInvalid) for letters that commands would take amiss."""
    if not _PLAIN.fullmatch(directory):
        raise PlanError(
            CONFIG_INVALID,
            f"the project in {directory!r} must be installed, but its name has unusual letters",
            "Use letters, digits, '.', '_', '+' and '-' in that directory's name.",
        )
    return directory


def build_requires(files: Files, projects: Iterable[str]) -> tuple[str, ...]:
    """The packages that building `projects` takes, as their pyproject.toml tells (or as pip assumes)."""
    needed: list[str] = []
    for directory in projects:
        pyproject = posixpath.join(directory, "pyproject.toml")
        system = read_toml(files, pyproject).table("build-system") if pyproject in files else None
        needed += system.words("requires", "hatchling") if system else ()
        if system is None or "build-backend" not in system.values:
            needed += ("setuptools", "wheel")  # setuptools asked for wheel until its version 70
    return tuple(dict.fromkeys(needed))
