"""Imports the entrypoint `module:object` of the crew. Called by `crew`."""

from __future__ import annotations

import importlib
import os
import sys


class EntrypointNotFound(Exception):
    """The module or object does not exist or cannot be called; the message says what to change."""


def load(spec: str) -> object:
    """Import the module and return the object. Raises EntrypointNotFound, or any error of the module."""
    name, colon, path = spec.partition(":")
    if not colon or not name.strip() or not path.strip():
        raise EntrypointNotFound(
            f"The entrypoint {spec!r} is neither a name in the deployment's configuration, nor a file, "
            "nor of the form module:object, as in 'main:kickoff'."
        )
    _add_directory(name)
    try:
        target: object = importlib.import_module(name)
    except ModuleNotFoundError as error:
        from .failure import raised_by_import

        missing = error.name or ""
        if (name == missing or name.startswith(missing + ".")) and raised_by_import(error):
            raise EntrypointNotFound(
                f"The entrypoint {spec!r} names the module {missing!r}, which is neither in the "
                "crew's directory, nor in its src, nor installed. "
                "Correct `entrypoint` in the configuration file or of the run."
            ) from None
        raise
    for part in path.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise EntrypointNotFound(_no_attribute(spec, part, target)) from None
    return target


def _add_directory(name: str) -> None:
    """Append the directory of a module below the root or src to sys.path, as if it were run as a script.

    The same for a module of an installed project. It comes last: only what is nowhere else is imported from
    there.
    """
    path = name.replace(".", os.sep) + ".py"
    roots = [os.getcwd(), os.path.join(os.getcwd(), "src")]
    if "." in name and not any(os.path.isfile(os.path.join(root, path)) for root in roots):
        roots = _roots_of_installed(name)
    for root in roots:
        directory = os.path.dirname(os.path.join(root, path))
        if os.path.isfile(os.path.join(root, path)) and directory not in sys.path:
            sys.path.append(directory)


def _roots_of_installed(name: str) -> list[str]:
    """Return the directories that have the package of a module, which this does not import."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return []
    return [os.path.dirname(place) for place in (spec and spec.submodule_search_locations) or ()]


def _no_attribute(spec: str, part: str, owner: object) -> str:
    import difflib

    names = [name for name in dir(owner) if not name.startswith("_")]
    matches = difflib.get_close_matches(part, names, 1)
    hint = f" Did you mean {matches[0]!r}?" if matches else ""
    kind = getattr(owner, "__name__", type(owner).__name__)
    return (
        f"The entrypoint {spec!r}: {kind} has no {part!r}.{hint} Correct `entrypoint` in the "
        "configuration file or of the run."
    )
