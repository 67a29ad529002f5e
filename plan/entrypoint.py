"""Whether an entrypoint (`module:object`) is there, told without executing anything. Called by plan.make."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .bindings import bindings_of, parse_module
from .errors import (
    CONFIG_INVALID,
    ENTRYPOINT_NOT_FOUND,
    UNSUPPORTED_FRAMEWORK,
    PlanError,
    listed,
    nearest,
)
from .packages.own_project import find_project
from .source import Files

# Where the crew's code lies within the image's path: /app and /app/src.
ROOTS = ("", "src/")

_IDENTIFIER = r"[^\W\d]\w*"
_ENTRYPOINT = re.compile(rf"{_IDENTIFIER}(\.{_IDENTIFIER})*:{_IDENTIFIER}(\.{_IDENTIFIER})*")
_ENTRYPOINT_LENGTH = 256
_FOREIGN = {
    "package.json": "JavaScript",
    "deno.json": "JavaScript",
    "go.mod": "Go",
    "Cargo.toml": "Rust",
    "pom.xml": "Java",
    "build.gradle": "Java",
    "build.gradle.kts": "Kotlin",
    "Gemfile": "Ruby",
    "composer.json": "PHP",
    "mix.exs": "Elixir",
}


def module_file(files: Files, module: str) -> str | None:
    """The file that `import module` would load from /app or /app/src, or None where it is in neither."""
    place = module.replace(".", "/")
    for root in ROOTS:
        for path in (f"{root}{place}/__init__.py", f"{root}{place}.py"):
            if path in files:
                return path
    return None


@dataclass(frozen=True)
class Located:
    """The entrypoint's file, and the directory of the project that must be installed for it (None: none)."""

    path: str
    project: str | None = None


def find_entrypoint(
    files: Files,
    entrypoint: str,
    origin: str,
    python: str,
    left_out: Mapping[str, str] | None = None,
    installing: bool = True,
) -> Located:
    """Where the module is, which binds the object or whose text cannot tell.

    `origin` says where the entrypoint was declared, `python` the crew's version, `left_out` the
    excluded paths with their patterns, `installing` whether it may be in a project of the tree that
    is installed for it. Raises PlanError: ConfigInvalid for a malformed one, UnsupportedFramework
    for a tree of another language, else EntrypointNotFound naming what is there.
    """
    if len(entrypoint) > _ENTRYPOINT_LENGTH or not _ENTRYPOINT.fullmatch(entrypoint):
        raise PlanError(
            CONFIG_INVALID, f"{origin} is {entrypoint!r}, not module:object", "For example: pkg.crew:MyCrew."
        )
    module, _, dotted = entrypoint.partition(":")
    located = _located(files, module, installing)
    if located is None:
        raise _module_missing(files, entrypoint, module, origin, left_out or {})
    path = located.path
    tree = parse_module(path, files[path], python)
    if tree is None:
        return located
    thing = dotted.partition(".")[0]
    found = bindings_of(tree)
    if thing in found.names or found.open:
        return located
    public = tuple(name for name in found.names if not name.startswith("_"))
    meant = nearest(thing, public)
    raise PlanError(
        ENTRYPOINT_NOT_FOUND,
        f"{path} binds no {thing!r} (asked for by {origin}); it binds {listed(public) or 'nothing'}",
        f"Did you mean {module}:{meant}?" if meant else f"Define {thing} in {path}, or name another object.",
    )


def _located(files: Files, module: str, installing: bool) -> Located | None:
    path = module_file(files, module)
    if path is not None:
        return Located(path)
    installed = find_project(files, module) if installing else None
    return Located(*installed) if installed else None


def _module_missing(
    files: Files, entrypoint: str, module: str, origin: str, left_out: Mapping[str, str]
) -> PlanError:
    place = module.replace(".", "/")
    for path, pattern in left_out.items():
        if f"/{path}".endswith((f"/{place}.py", f"/{place}/__init__.py")):
            return PlanError(
                ENTRYPOINT_NOT_FOUND,
                f"{path}, needed for {entrypoint} ({origin}), is excluded by the pattern {pattern!r}",
                f'Change that pattern of build.exclude, or add "!{path}" after it.',
            )
    modules = tuple(sorted(_modules(files)))
    if not modules:
        for name, language in _FOREIGN.items():
            if name in files:
                return PlanError(
                    UNSUPPORTED_FRAMEWORK,
                    f"{name} is there but no Python file: this looks like {language}",
                    "Only Python crews can be built. Is the source's path right?",
                )
        return PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"there is no Python file at all (looking for {entrypoint}, {origin})",
            "Is the source's path right?",
        )
    meant = nearest(module, modules)
    return PlanError(
        ENTRYPOINT_NOT_FOUND,
        f"there is no {place}.py or src/{place}.py for {entrypoint} ({origin}); there is {listed(modules)}",
        f"Did you mean the module {meant}?" if meant else 'Set entrypoint = "module:object" in crew.toml.',
    )


def _modules(files: Files) -> set[str]:
    names = set()
    for path in files:
        if path.endswith(".py"):
            place = path.removeprefix("src/").removesuffix(".py")
            if posixpath.basename(place) == "__init__":
                place = posixpath.dirname(place)
            if place:
                names.add(place.replace("/", "."))
    return names
