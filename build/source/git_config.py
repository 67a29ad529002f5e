"""Files of a commit in the format of git's configuration: `.gitmodules`, `.lfsconfig`.

Called by build.source.submodules and build.source.lfs. libgit2 parses them; nothing of them configures it.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

import pygit2

from build.errors import CONTEXT_INVALID, BuildRefused

_MAX_BYTES = 1 << 20
_INCLUDE = re.compile(rb"^\s*\[\s*include", re.IGNORECASE | re.MULTILINE)
_FILE_MODES = (pygit2.enums.FileMode.BLOB, pygit2.enums.FileMode.BLOB_EXECUTABLE)


def read_git_config(repository: Any, root: Any, name: str) -> dict[str, str]:
    """Return the values of the file `name` in the tree `root` by key. Raises BuildRefused."""
    try:
        item = root[name]
    except KeyError:
        return {}
    if item.filemode not in _FILE_MODES:
        raise _refused(name, "is not a plain file")
    if repository.odb.read_header(item.id)[1] > _MAX_BYTES:
        raise _refused(name, f"has more than {_MAX_BYTES} bytes")
    return parse_git_config(item.data, name)


def parse_git_config(data: bytes, name: str) -> dict[str, str]:
    """Return the values by key; of a repeated key the last one. Raises BuildRefused."""
    # libgit2 would read the named file of this machine.
    if _INCLUDE.search(data):
        raise _refused(name, "includes another file")
    with tempfile.TemporaryDirectory(prefix="config-") as directory:
        path = Path(directory) / "config"
        path.write_bytes(data)
        try:
            return {str(entry.name): str(entry.value) for entry in pygit2.Config(str(path))}
        except (pygit2.GitError, ValueError, OSError):
            raise _refused(name, "is not in the format of git's configuration") from None


def _refused(name: str, problem: str) -> BuildRefused:
    return BuildRefused(CONTEXT_INVALID, f"{name} {problem}", f"Correct {name} and push it.")
