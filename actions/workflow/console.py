"""The step's log, which the runner of GitHub Actions reads for commands.

What a crew or a build prints must never be taken for one, so commands are
stopped from the beginning and let through one by one. Used by all that prints.
"""

import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

# The runner ends a line at \r as well; escape sequences that move the cursor would hide lines.
_BREAKS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1f\x7f\x80-\x9f]|\x1b(?!\[[0-9;]*m)")


def escaped(text: str) -> str:
    """A command's message: one line, whatever is in `text`."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """The value of one of a command's properties."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


def lines(text: str) -> list[str]:
    """`text` as printable lines; colours stay, other control characters become U+FFFD."""
    return [_CONTROLS.sub("\ufffd", line) for line in _BREAKS.split(text)]


class Console:
    """Prints text that is never a command, and commands."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._token = secrets.token_hex(16)

    @contextmanager
    def opened(self) -> Iterator["Console"]:
        """Between begin and end nothing but `command` is taken for one."""
        self._print(f"::stop-commands::{self._token}")
        try:
            yield self
        finally:
            self._print(f"::{self._token}::")

    def say(self, text: str) -> None:
        """Prints text of whatever origin."""
        for line in lines(text):
            self._print(line)

    def command(self, name: str, message: str = "", **properties: object) -> None:
        """Gives the runner a command; properties that are None are left out."""
        given = [
            f"{key}={escaped_property(str(value))}" for key, value in properties.items() if value is not None
        ]
        head = f"{name} {','.join(given)}" if given else name
        self._print(f"::{self._token}::")
        self._print(f"::{head}::{escaped(message)}")
        self._print(f"::stop-commands::{self._token}")

    def mask(self, secret: str) -> None:
        """Hides a secret in all that is printed from now on, in this step and later ones."""
        for line in filter(None, secret.splitlines()):
            self.command("add-mask", line)

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Folds what is printed within."""
        self.command("group", title)
        try:
            yield
        finally:
            self.command("endgroup")

    def _print(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()
