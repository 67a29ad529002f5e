"""Classes that a module names: its own, and those that it imports from the source. Called by .find.

Reading is bounded, because classes may contain each other, and modules may import each other.
"""

import ast
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..bindings import import_start, module_at, readable_module
from ..source import Files

_MAX_STEPS = 500
_MAX_IMPORTED_MODULES = 20
_MAX_IMPORTED_BYTES = 1 << 20
# Modules from the one that imports a class to the one that defines it.
_MAX_IMPORT_DEPTH = 5
# Classes of libraries that are the state of many graphs.
_KNOWN_CLASSES = {
    node.name: node
    for node in ast.parse("class MessagesState(TypedDict):\n    messages: list").body
    if isinstance(node, ast.ClassDef)
}


@dataclass
class Source:
    """Files in which classes are looked for, and what is left of the bounds.

    `python` is the crew's version, `roots` are the directories from which modules are imported.
    """

    files: Files
    python: str
    roots: Sequence[str]
    steps_left: int = _MAX_STEPS
    bytes_left: int = _MAX_IMPORTED_BYTES
    imported: dict[str, "ModuleClasses | None"] = field(default_factory=dict)

    def take_step(self) -> bool:
        """Count a step; return whether one was left."""
        self.steps_left -= 1
        return self.steps_left >= 0

    def module(self, path: str) -> "ModuleClasses | None":
        """Return the classes of an imported module; None if it cannot be read or exceeds a bound."""
        if path not in self.imported and len(self.imported) < _MAX_IMPORTED_MODULES:
            self.bytes_left -= len(self.files[path])
            tree = readable_module(self.files, path, self.python) if self.bytes_left >= 0 else None
            self.imported[path] = classes_of(tree, path, self) if tree else None
        return self.imported.get(path)


@dataclass(frozen=True)
class ModuleClasses:
    """Classes at the top level of a module by name, and the names that it imports.

    An import has the paths, without a suffix, of the modules that it may mean, and the name in that module.
    """

    source: Source
    by_name: Mapping[str, ast.ClassDef]
    imports: Mapping[str, tuple[Sequence[str], str]] = field(default_factory=dict)

    def find(self, name: str, depth: int = 0) -> "tuple[ast.ClassDef, ModuleClasses] | None":
        """Return the class that the module means by a name, with the classes of its own module, or None."""
        if name in self.by_name:
            return self.by_name[name], self
        stems, name = self.imports.get(name, ((), name))
        path = next(filter(None, (module_at(self.source.files, stem) for stem in stems)), None)
        module = self.source.module(path) if path and depth < _MAX_IMPORT_DEPTH else None
        if module:
            return module.find(name, depth + 1)
        return (_KNOWN_CLASSES[name], ModuleClasses(self.source, {})) if name in _KNOWN_CLASSES else None


def classes_of(tree: ast.Module, path: str, source: Source) -> ModuleClasses:
    """Return the classes of the module at `path`."""
    by_name = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    imports: dict[str, tuple[Sequence[str], str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            start = import_start(node, path)
            parts = (node.module or "").split(".")
            stems = [
                posixpath.join(root, *parts).rstrip("/")
                for root in (source.roots if start is None else [start])
            ]
            for alias in node.names:
                # Imports of the module itself come first; a function may import another class of the name.
                imports.setdefault(alias.asname or alias.name, (stems, alias.name))
    return ModuleClasses(source, by_name, imports)
