"""The step's log, which the GitHub Actions runner parses for workflow commands.

Output of crews and builds must not issue commands, so the console stops command processing at the start and
enables it only for its own commands. Used by all modules that print.
"""

import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

# The runner also ends a line at \r; escape sequences that move the cursor would hide lines.
_BREAKS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1f\x7f\x80-\x9f]|\x1b(?!\[[0-9;]*m)")


def escaped(text: str) -> str:
    """Return `text` encoded as the message of a command, on one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """Return `text` encoded as the value of a command's property."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


def lines(text: str) -> list[str]:
    """Return `text` as printable lines; colours stay, other control characters become U+FFFD."""
    return [_CONTROLS.sub("\ufffd", line) for line in _BREAKS.split(text)]


class Console:
    """Prints text that is never a command, and commands."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._token = secrets.token_hex(16)

    @contextmanager
    def commands_stopped(self) -> Iterator["Console"]:
        """Stop command processing inside the block, except for calls of `command`."""
        self._print(f"::stop-commands::{self._token}")
        try:
            yield self
        finally:
            self._print(f"::{self._token}::")

    def log(self, text: str) -> None:
        """Print untrusted text."""
        for line in lines(text):
            self._print(line)

    def command(self, name: str, message: str = "", **properties: object) -> None:
        """Issue a workflow command; omits properties that are None."""
        pairs = [
            f"{key}={escaped_property(str(value))}" for key, value in properties.items() if value is not None
        ]
        head = f"{name} {','.join(pairs)}" if pairs else name
        self._print(f"::{self._token}::")
        self._print(f"::{head}::{escaped(message)}")
        self._print(f"::stop-commands::{self._token}")

    def mask(self, secret: str) -> None:
        """Mask a secret in all later output of this step and following steps."""
        for line in filter(None, secret.splitlines()):
            self.command("add-mask", line)

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Fold the output of the block into a group."""
        self.command("group", title)
        try:
            yield
        finally:
            self.command("endgroup")

    def _print(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()
