"""Escaping of GitHub Actions workflow commands, since the runner parses all output of a step.

Crews and builds must not issue such commands. Pure. Called by `crewyard.cli.output`.
"""

import re
from collections.abc import Mapping

# At the start of a line, after whitespace; the older form counts anywhere in a line.
_COMMAND = re.compile(r"(\A|[\r\n])(\s*):(?=:)")
_OLD_COMMAND = "##["


def in_step(environment: Mapping[str, str]) -> bool:
    """Return whether the program runs in a step of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def escape_commands(text: str) -> str:
    """Return the text with the first character of each command escaped."""
    return _COMMAND.sub(r"\1\2\\x3a", text).replace(_OLD_COMMAND, r"\x23#[")


def escape_commands_json(text: str) -> str:
    """Return the same JSON value; its line starts with a brace, so only the older form needs an escape."""
    return text.replace(_OLD_COMMAND, r"\u0023#[")
