"""In a step of GitHub Actions whatever is printed is read for commands, which crews and builds must not give.

Pure. Called by `crewyard.cli.output`.
"""

import re
from collections.abc import Mapping

# At a line's beginning, behind any white space; the older form counts anywhere in a line.
_COMMAND = re.compile(r"(\A|[\r\n])(\s*):(?=:)")
_OLDER = "##["


def inside(environment: Mapping[str, str]) -> bool:
    """Whether the program runs in such a step."""
    return environment.get("GITHUB_ACTIONS") == "true"


def powerless(text: str) -> str:
    """The text with the first sign of each command spelled out, as control characters are at a terminal."""
    return _COMMAND.sub(r"\1\2\\x3a", text).replace(_OLDER, r"\x23#[")


def powerless_json(text: str) -> str:
    """The same JSON; a line of it begins with a brace, so only the older form has to be spelled otherwise."""
    return text.replace(_OLDER, r"\u0023#[")
