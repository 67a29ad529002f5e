"""Relative imports that need a package above the module. Called by .candidates."""

import ast
import posixpath
from collections.abc import Iterator

from ..bindings import import_start, module_at, readable_module
from ..source import Files

_MAX_MODULES = 50


def leaves_root(files: Files, path: str, root: str, python: str) -> bool:
    """Return whether the module, or one that it imports relatively, imports from the directory `root` itself.

    Such a module cannot be imported with `root` on the path, only with the directory above it. `python` is
    the crew's version.
    """
    pending, seen = [path], {path}
    while pending and len(seen) <= _MAX_MODULES:
        current = pending.pop()
        tree = readable_module(files, current, python)
        for package, names in _relative_imports(tree, current) if tree else ():
            if not package.startswith(f"{root}/"):
                return True
            for name in names:
                found = module_at(files, name)
                if found and found not in seen:
                    seen.add(found)
                    pending.append(found)
    return False


def _relative_imports(tree: ast.Module, path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the package that each import starts from, and the paths of the modules that it may name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or (package := import_start(node, path)) is None:
            continue
        module = posixpath.join(package, (node.module or "").replace(".", "/")).rstrip("/")
        yield package, [module, *(f"{module}/{alias.name}" for alias in node.names)]
