"""Static check that an entrypoint exists; executes nothing. Called by plan.make."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .bindings import bindings_of, module_at, parse_module
from .errors import (
    CONFIG_INVALID,
    ENTRYPOINT_NOT_FOUND,
    PlanError,
    closest_match,
    join_limited,
)
from .file_entrypoint import check_file_entrypoint, is_file_entrypoint
from .packages.own_project import find_project
from .source import Files

# Import roots of the crew's code in the image: /app and /app/src.
ROOTS = ("", "src/")

_IDENTIFIER = r"[^\W\d]\w*"
# Python imports a module of such a name where it is asked by a text, as for `module:object`.
_MODULE_NAME = r"\w[\w-]*"
_ENTRYPOINT = re.compile(rf"{_MODULE_NAME}(\.{_MODULE_NAME})*:{_IDENTIFIER}(\.{_IDENTIFIER})*")
_MODULE = re.compile(_MODULE_NAME)
_MAX_ENTRYPOINT_LENGTH = 256
_NOTEBOOKS = "Notebooks are not run: export one with jupyter nbconvert --to script."


def is_module_name(name: str) -> bool:
    """Return whether Python can import a module or package of this name, without its parents."""
    return _MODULE.fullmatch(name) is not None


def module_file(files: Files, module: str) -> str | None:
    """Return the file that `import module` would load from /app or /app/src, or None."""
    found = (module_at(files, root + module.replace(".", "/")) for root in ROOTS)
    return next(filter(None, found), None)


@dataclass(frozen=True)
class EntrypointLocation:
    """The entrypoint's file, and the directory of the project to install for it, or None."""

    path: str
    project: str | None = None


def find_entrypoint(
    files: Files,
    entrypoint: str,
    origin: str,
    python: str,
    excluded: Mapping[str, str] | None = None,
    allow_projects: bool = True,
) -> EntrypointLocation:
    """Return the location of the file, or of the module, which binds the object or may bind it at run time.

    `origin` is the place of the entrypoint's declaration, `python` the crew's version, `excluded` the
    excluded paths with their patterns; `allow_projects` also searches projects of the tree, which are then
    installed. Raises PlanError: ConfigInvalid for a malformed entrypoint, else EntrypointNotFound naming what
    exists.
    """
    if len(entrypoint) <= _MAX_ENTRYPOINT_LENGTH and is_file_entrypoint(entrypoint):
        return EntrypointLocation(check_file_entrypoint(files, entrypoint, origin, python))
    if len(entrypoint) > _MAX_ENTRYPOINT_LENGTH or not _ENTRYPOINT.fullmatch(entrypoint):
        raise PlanError(
            CONFIG_INVALID,
            f"{origin} is {entrypoint!r}, not module:object, nor a file",
            "For example: pkg.crew:MyCrew, or main.py.",
        )
    module, _, dotted = entrypoint.partition(":")
    located = _locate(files, module, allow_projects)
    if located is None:
        raise _module_missing(files, module, dotted, origin, python, excluded or {})
    path = located.path
    tree = parse_module(path, files[path], python)
    if tree is None:
        return located
    name = dotted.partition(".")[0]
    bindings = bindings_of(tree)
    if name in bindings.names or bindings.incomplete:
        return located
    public = tuple(name for name in bindings.names if not name.startswith("_"))
    suggestion = closest_match(name, public)
    raise PlanError(
        ENTRYPOINT_NOT_FOUND,
        f"{path} does not define {name!r} (asked for by {origin}); "
        f"it defines {join_limited(public) or 'nothing'}",
        f"Did you mean {module}:{suggestion}?"
        if suggestion
        else f"Define {name} in {path}, or name another object.",
    )


def _locate(files: Files, module: str, allow_projects: bool) -> EntrypointLocation | None:
    path = module_file(files, module)
    if path is not None:
        return EntrypointLocation(path)
    project = find_project(files, module) if allow_projects else None
    return EntrypointLocation(*project) if project else None


def _module_missing(
    files: Files, module: str, dotted: str, origin: str, python: str, excluded: Mapping[str, str]
) -> PlanError:
    entrypoint, module_path = f"{module}:{dotted}", module.replace(".", "/")
    for path, pattern in excluded.items():
        if f"/{path}".endswith((f"/{module_path}.py", f"/{module_path}/__init__.py")):
            return PlanError(
                ENTRYPOINT_NOT_FOUND,
                f"{path}, needed for {entrypoint} ({origin}), is excluded by the pattern {pattern!r}",
                f'Change that pattern in build.exclude, or add "!{path}" after it.',
            )
    modules = tuple(sorted(_modules(files)))
    has_notebooks = any(path.endswith(".ipynb") for path in files)
    if not modules:
        return PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"the source has no Python file (looking for {entrypoint}, {origin})",
            _NOTEBOOKS
            if has_notebooks
            else "Check spec.source.git.path of the Project, or the directory that you deploy.",
        )
    general = 'Set entrypoint = "module:object" in crew.toml.' + (f" {_NOTEBOOKS}" if has_notebooks else "")
    similar = closest_match(module, modules)
    suggestion = similar and _accepted(files, similar, dotted, origin, python)
    return PlanError(
        ENTRYPOINT_NOT_FOUND,
        f"{module_path}.py or src/{module_path}.py not found for {entrypoint} ({origin}); "
        f"modules: {join_limited(modules)}",
        f"Did you mean {suggestion}?" if suggestion else general,
    )


def _accepted(files: Files, module: str, dotted: str, origin: str, python: str) -> str | None:
    """Return the entrypoint if the module is a file of the source and the plan accepts it, else None."""
    if module_file(files, module) is None:
        return None
    try:
        find_entrypoint(files, f"{module}:{dotted}", origin, python)
    except PlanError:
        return None
    return f"{module}:{dotted}"


def _modules(files: Files) -> set[str]:
    names = set()
    for path in files:
        if path.endswith(".py"):
            module_path = path.removeprefix("src/").removesuffix(".py")
            if posixpath.basename(module_path) == "__init__":
                module_path = posixpath.dirname(module_path)
            if module_path:
                names.add(module_path.replace("/", "."))
    return names
