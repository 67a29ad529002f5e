"""Where in the repository a failed build's reason lies. Pure. Called by the deploy program."""

import posixpath
import re

_LINE = re.compile(r"(?<![\w./-])(?P<file>[\w.-][\w./-]*\.[a-z]{2,5}) line (?P<line>[0-9]{1,7})\b")
_AT = re.compile(
    r"^(?P<file>[\w.-][\w./-]*\.[a-z]{2,5}) is not valid .*\bline (?P<line>[0-9]{1,7})\b", re.DOTALL
)
_FILE = re.compile(r"^(?P<file>[\w.-][\w./-]*\.(?:toml|json|txt|py))\b")


def place(message: str, directory: str) -> tuple[str, int | None] | None:
    """File and line that `message` names, the file relative to the repository's root.

    `directory` is that of the crew, with `/`, also relative to the root.
    """
    for pattern in (_AT, _LINE, _FILE):
        found = pattern.search(message[:4096])
        if found:
            path = posixpath.normpath(posixpath.join(directory, found["file"]))
            line = int(found["line"]) if "line" in found.groupdict() else None
            return None if path.startswith(("../", "/")) else (path, line)
    return None
