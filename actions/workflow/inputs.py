"""A step's inputs, which arrive as environment variables, and checks of them that name the input.

Called by the two programs. Never is an input part of a command line.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from actions.workflow.errors import Failed

PREFIX = "CREWYARD_INPUT_"
_DURATION = re.compile(r"(?=.*[1-9])(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?", re.ASCII)
_NAME = re.compile(r"(?=.{1,52}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Inputs:
    """The inputs as they were written. Every method raises Failed naming the input that is wrong."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str = "") -> str:
        """The input without white space around it; `default` where it is empty."""
        value = self._environment.get(PREFIX + name.upper().replace("-", "_"), "").strip()
        return value or default

    def needed(self, name: str) -> str:
        """An input that must be there."""
        value = self.text(name)
        if not value:
            raise Failed(f"The input {name} is missing; add it below `with:`.")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """`true` or `false`."""
        value = self.text(name, str(default)).lower()
        if value not in ("true", "false"):
            raise Failed(f"The input {name} must be true or false, not {value[:80]!r}.")
        return value == "true"

    def seconds(self, name: str, default: str) -> int:
        """A duration such as 90s, 30m or 1h30m, in seconds."""
        value = self.text(name, default)
        found = _DURATION.fullmatch(value)
        if not found:
            raise Failed(f"The input {name} is no duration: {value[:80]!r}. Write it like 90s, 30m or 1h30m.")
        hours, minutes, rest = (int(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + rest

    def project(self, name: str = "project") -> str:
        """A project's name."""
        value = self.needed(name)
        if not _NAME.fullmatch(value):
            raise Failed(
                f"The input {name} is no project's name: {value[:80]!r}. "
                "It has lower-case letters, digits and hyphens, at most 52."
            )
        return value

    def deployment(self, name: str = "deployment") -> str:
        """A deployment's id."""
        value = self.needed(name)
        if len(value) > 52 or not value.startswith("dep_") or not _NAME.fullmatch(value[4:]):
            raise Failed(f"The input {name} is no deployment's id: {value[:80]!r}. It is like dep_ab12.")
        return value

    def lines(self, name: str) -> list[str]:
        """One entry a line."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def api_url(self, name: str = "api-url") -> str:
        """The address of the API, without a slash at its end."""
        value = self.needed(name).rstrip("/").removesuffix("/v1")
        try:
            parts = urlsplit(value)
            wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
        except ValueError:
            raise Failed(f"The input {name} is no address.") from None
        if wrong or "@" in parts.netloc or parts.query or parts.fragment or not value.isprintable():
            # Not shown: it may hold a password.
            raise Failed(f"The input {name} must be like https://crewyard.example.com, without key or query.")
        return value

    def plain_text(self) -> bool:
        """Whether the key would travel unencrypted beyond this machine."""
        parts = urlsplit(self.api_url())
        return parts.scheme == "http" and parts.hostname not in _LOOPBACK
