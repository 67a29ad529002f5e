"""Packages that the entrypoint imports and the source does not have. Called by plan.make."""

import ast
import posixpath
import sys
from collections.abc import Iterator

from ..bindings import import_start, readable_module
from ..entrypoint import ROOTS
from ..source import Files

_MAX_MODULES = 50
# A namespace that libraries of several packages share.
_SHARED = "google"
_OWN = frozenset({*sys.stdlib_module_names, "crewyard_runtime"})


def foreign_imports(files: Files, path: str, python: str) -> list[str]:
    """Return what the module at `path`, and those of the source that it imports, import from elsewhere.

    Only statements count that every import of the module executes, outside of functions, conditions and
    `try`. `python` is the crew's version.
    """
    foreign: set[str] = set()
    pending, seen = [*_with_packages(files, path)], {path}
    while pending and len(seen) <= _MAX_MODULES:
        current = pending.pop()
        tree = readable_module(files, current, python)
        for parts, base in _imported(tree, current) if tree else ():
            roots = [base] if base is not None else [*ROOTS, _slashed(posixpath.dirname(path))]
            found = [each for root in roots for each in _modules(files, root, parts)]
            if (
                not found
                and base is None
                and parts[0] not in _OWN
                and not _is_directory(files, roots, parts[0])
            ):
                foreign.add(".".join(parts[:2]) if parts[0] == _SHARED else parts[0])
            for each in found:
                if each not in seen:
                    seen.add(each)
                    pending.append(each)
    return sorted(foreign)


def _with_packages(files: Files, path: str) -> Iterator[str]:
    """Yield the module and the packages that contain it."""
    yield path
    directory = posixpath.dirname(path)
    while directory and (package := f"{directory}/__init__.py") in files:
        yield package
        directory = posixpath.dirname(directory)


def _imported(tree: ast.Module, path: str) -> Iterator[tuple[list[str], str | None]]:
    """Yield the parts of the modules that a module imports, with the directory of relative ones."""
    for node in tree.body:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield alias.name.split("."), None
            case ast.ImportFrom(module=module, names=aliases):
                base = import_start(node, path)
                for alias in aliases:
                    yield (
                        [*(module.split(".") if module else ()), alias.name],
                        (None if base is None else _slashed(base)),
                    )


def _slashed(directory: str) -> str:
    return f"{directory}/" if directory else ""


def _modules(files: Files, root: str, parts: list[str]) -> Iterator[str]:
    """Yield the files of the module and of the packages above it, as far as the source has them."""
    for length, _ in enumerate(parts, 1):
        stem = root + "/".join(parts[:length])
        yield from (each for each in (f"{stem}.py", f"{stem}/__init__.py") if each in files)


def _is_directory(files: Files, roots: list[str], name: str) -> bool:
    """Return whether the source has a directory of this name, which is a package without `__init__.py`."""
    return any(path.startswith(f"{root}{name}/") for root in roots for path in files)
