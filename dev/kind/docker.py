"""Docker calls, each with a timeout."""

import json
import re
from typing import Any

from dev.process import command
from dev.process.command import CommandFailed

_TIMEOUT_SECONDS = 120
_KINDS = "(container|network|volume|object)"
# Messages of old and new engines; any other error means that the state is unknown.
_ABSENT = re.compile(rf"no such {_KINDS}|: {_KINDS}( \S+)? not found", re.IGNORECASE)


def run(*arguments: str, stdin: str | None = None, seconds: float = _TIMEOUT_SECONDS) -> str:
    """Return the output of `docker arguments`. Raises CommandFailed."""
    return command.read_output(["docker", *arguments], seconds=seconds, stdin=stdin)


def inspect(kind: str, name: str) -> list[dict[str, Any]] | None:
    """Return Docker's description of a container, network or volume; None if the name does not exist.

    Raises CommandFailed if Docker fails otherwise: an unknown state does not count as absent.
    """
    try:
        details: list[dict[str, Any]] = json.loads(run(kind, "inspect", name))
    except CommandFailed as error:
        if _ABSENT.search(str(error)):
            return None
        raise
    return details or None


def running(container: str) -> bool | None:
    """Return whether the container is running; None if it does not exist. Raises CommandFailed."""
    details = inspect("container", container)
    return None if details is None else bool(details[0]["State"]["Running"])


def address(container: str, network: str) -> str:
    """Return the container's IPv4 address in a network; empty if it is not attached."""
    details = inspect("container", container) or [{}]
    networks = details[0].get("NetworkSettings", {}).get("Networks", {})
    return str((networks.get(network) or {}).get("IPAddress", ""))
