"""Finds the file and line that the message of a failed build names. Pure. Called by the action `deploy`."""

import posixpath
import re

_LINE = re.compile(r"(?<![\w./-])(?P<file>[\w.-][\w./-]*\.[a-z]{2,5}) line (?P<line>[0-9]{1,7})\b")
_AT = re.compile(
    r"^(?P<file>[\w.-][\w./-]*\.[a-z]{2,5}) is not valid .*\bline (?P<line>[0-9]{1,7})\b", re.DOTALL
)
_FILE = re.compile(r"^(?P<file>[\w.-][\w./-]*\.(?:toml|json|txt|py))\b")


def locate(message: str, directory: str) -> tuple[str, int | None] | None:
    """Return the file and line that `message` names, the file relative to the repository root.

    `directory` is the crew's directory, with `/`, also relative to the repository root.
    """
    for pattern in (_AT, _LINE, _FILE):
        match = pattern.search(message[:4096])
        if match:
            path = posixpath.normpath(posixpath.join(directory, match["file"]))
            line = int(match["line"]) if "line" in match.groupdict() else None
            return None if path.startswith(("../", "/")) else (path, line)
    return None
