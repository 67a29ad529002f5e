"""Inputs of a step, which arrive as environment variables, with validation that names the input.

Called by both actions. Inputs are never part of a command line.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from actions.workflow.errors import StepFailed

PREFIX = "CREWYARD_INPUT_"
_DURATION = re.compile(r"(?=.*[1-9])(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?", re.ASCII)
_NAME = re.compile(r"(?=.{1,52}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Inputs:
    """The raw inputs. Every method raises StepFailed that names an invalid input."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str = "") -> str:
        """Return the stripped input; `default` if it is empty."""
        value = self._environment.get(PREFIX + name.upper().replace("-", "_"), "").strip()
        return value or default

    def required(self, name: str) -> str:
        """Return a required input."""
        value = self.text(name)
        if not value:
            raise StepFailed(f"The input {name} is missing; add it below `with:`.")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean input, `true` or `false`."""
        value = self.text(name, str(default)).lower()
        if value not in ("true", "false"):
            raise StepFailed(f"The input {name} must be true or false, not {value[:80]!r}.")
        return value == "true"

    def seconds(self, name: str, default: str) -> int:
        """Return a duration such as 90s, 30m or 1h30m in seconds."""
        value = self.text(name, default)
        match = _DURATION.fullmatch(value)
        if not match:
            raise StepFailed(
                f"The input {name} is not a duration: {value[:80]!r}. Write it like 90s, 30m or 1h30m."
            )
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds

    def project(self, name: str = "project") -> str:
        """Return a project name."""
        value = self.required(name)
        if not _NAME.fullmatch(value):
            raise StepFailed(
                f"The input {name} is not a project name: {value[:80]!r}. "
                "Use lower-case letters, digits and hyphens, at most 52 characters."
            )
        return value

    def deployment(self, name: str = "deployment") -> str:
        """Return a deployment id."""
        value = self.required(name)
        if len(value) > 52 or not value.startswith("dep_") or not _NAME.fullmatch(value[4:]):
            raise StepFailed(f"The input {name} is not a deployment id such as dep_ab12: {value[:80]!r}.")
        return value

    def lines(self, name: str) -> list[str]:
        """Return the non-empty lines of an input."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def api_url(self, name: str = "api-url") -> str:
        """Return the URL of the API without a trailing slash."""
        value = self.required(name).rstrip("/").removesuffix("/v1")
        try:
            parts = urlsplit(value)
            wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
        except ValueError:
            raise StepFailed(f"The input {name} is not a URL.") from None
        if wrong or "@" in parts.netloc or parts.query or parts.fragment or not value.isprintable():
            # Do not print the value: it may contain a password.
            raise StepFailed(
                f"The input {name} must be like https://crewyard.example.com, without key or query."
            )
        return value

    def is_unencrypted(self) -> bool:
        """Return whether requests would leave this machine unencrypted."""
        parts = urlsplit(self.api_url())
        return parts.scheme == "http" and parts.hostname not in _LOOPBACK
