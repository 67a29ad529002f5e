"""`module:object` → the object, imported from the crew. Called by `crew`."""

from __future__ import annotations

import importlib


class NotFound(Exception):
    """There is no such module or object; the message says what to change."""


def load(spec: str) -> object:
    """Imports the module and takes the object. Raises NotFound, or whatever the crew's module raises."""
    name, colon, path = spec.partition(":")
    if not colon or not name.strip() or not path.strip():
        raise NotFound(f"The entrypoint {spec!r} is not of the form module:object, as in 'main:kickoff'.")
    try:
        found: object = importlib.import_module(name)
    except ModuleNotFoundError as error:
        from .failure import raised_by_import

        missing = error.name or ""
        if (name == missing or name.startswith(missing + ".")) and raised_by_import(error):
            raise NotFound(
                f"The entrypoint {spec!r} names the module {missing!r}, which is neither in the "
                "crew's directory, "
                "nor in its src, nor installed. Correct `entrypoint` in the configuration file."
            ) from None
        raise
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise NotFound(_no_attribute(spec, part, found)) from None
    return found


def _no_attribute(spec: str, part: str, owner: object) -> str:
    import difflib

    names = [one for one in dir(owner) if not one.startswith("_")]
    near = difflib.get_close_matches(part, names, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    kind = getattr(owner, "__name__", type(owner).__name__)
    return (
        f"The entrypoint {spec!r}: {kind} has no {part!r}.{hint} Correct `entrypoint` in the "
        "configuration file."
    )
