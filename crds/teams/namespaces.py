"""The namespaces that an installation serves: its own and those of teams. Read by both processes."""

import re

DEFAULT_NAMESPACE = "crews"
MAX_NAMESPACES = 200
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def parse_namespaces(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas, each once, in order. Raises ValueError."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in found:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a namespace; set names such as team-a,team-b")
    if len(found) > MAX_NAMESPACES:
        raise ValueError(f"{len(found)} namespaces are more than {MAX_NAMESPACES}")
    return found


def served(own: str, more: tuple[str, ...]) -> tuple[str, ...]:
    """Return all served namespaces, the installation's own first."""
    return (own, *(name for name in more if name != own))


def place_of(namespace: str, own: str) -> str | None:
    """Return the namespace of an object; None for the installation's own, and for a view without one."""
    return None if namespace in ("", own) else namespace
