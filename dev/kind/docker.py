"""The few things that are asked of Docker, each bounded in time."""

import json
import re
from typing import Any

from dev.process import command
from dev.process.command import CommandFailed

_TIMEOUT_SECONDS = 120
_KINDS = "(container|network|volume|object)"
# As engines say it, old and new; anything else is a question that was not answered.
_ABSENT = re.compile(rf"no such {_KINDS}|: {_KINDS}( \S+)? not found", re.IGNORECASE)


def run(*arguments: str, stdin: str | None = None, seconds: float = _TIMEOUT_SECONDS) -> str:
    """What `docker arguments` prints. Raises CommandFailed."""
    return command.read_output(["docker", *arguments], seconds=seconds, stdin=stdin)


def inspect(kind: str, name: str) -> list[dict[str, Any]] | None:
    """What Docker knows of a container, network or volume; None where there is none of that name.

    Raises CommandFailed where Docker does not say: what cannot be seen is not taken for gone.
    """
    try:
        details: list[dict[str, Any]] = json.loads(run(kind, "inspect", name))
    except CommandFailed as error:
        if _ABSENT.search(str(error)):
            return None
        raise
    return details or None


def running(container: str) -> bool | None:
    """Whether the container runs; None where there is none. Raises CommandFailed."""
    details = inspect("container", container)
    return None if details is None else bool(details[0]["State"]["Running"])


def address(container: str, network: str) -> str:
    """The container's IPv4 address in a network; empty where it is not in it."""
    details = inspect("container", container) or [{}]
    networks = details[0].get("NetworkSettings", {}).get("Networks", {})
    return str((networks.get(network) or {}).get("IPAddress", ""))
