"""The source tree that is linted or deployed: which files belong to it. Called by `lint` and `deploy`.

In a git checkout it is what git tracks and what it would track (not ignored); elsewhere all but what nobody
deploys.
"""

import itertools
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from crewyard.errors import CrewyardError

MOST_FILES = 50_000
_NEVER = {
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".DS_Store",
}
_SECRETS = {".env"}
_SECONDS = 120
# No program that a checkout names is started: it may be somebody else's.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false")


class Tree(Mapping[str, bytes]):
    """Relative paths (with /) to contents, read when they are asked for."""

    def __init__(self, root: Path, paths: list[str]) -> None:
        self.root = root
        self._paths = dict.fromkeys(sorted(paths, key=str.encode))

    def place(self, path: str) -> Path:
        """The file behind a path."""
        return self.root.joinpath(*path.split("/"))

    def __getitem__(self, path: str) -> bytes:
        if path not in self._paths:
            raise KeyError(path)
        return self.place(path).read_bytes()

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def read_tree(directory: Path) -> Tree:
    """The source tree of a directory. Raises CrewyardError where there is none, or it has too many files."""
    root = directory.resolve()
    found = _of_git(root)
    there = (path for path in (_walked(root) if found is None else found) if _belongs(root, path))
    paths = list(itertools.islice(there, MOST_FILES + 1))
    for path in paths:
        if not _is_text(path):
            raise CrewyardError(
                f"the name of the file {path!r} is no UTF-8 text; rename it, or let git ignore it"
            )
    if not paths:
        raise CrewyardError(f"{directory} has no files to deploy")
    if len(paths) > MOST_FILES:
        raise CrewyardError(f"{directory} has more than {MOST_FILES} files; is it the crew's own directory?")
    return Tree(root, paths)


def _belongs(root: Path, path: str) -> bool:
    """Whether it is a file of the tree: no link out of it, no secret of the developer."""
    parts = path.split("/")
    if parts[-1] in _SECRETS or any(part in _NEVER for part in parts):
        return False
    place = root.joinpath(*parts)
    try:
        return place.is_file() and place.resolve().is_relative_to(root)
    except OSError:
        return False


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_git(root: Path) -> list[str] | None:
    """What git knows below the directory; None where it is no checkout. Raises CrewyardError."""
    command = [
        *_GIT,
        "-C",
        str(root),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
        said = done.stderr.decode("utf-8", "replace").partition("\n")[0] if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said is not None:
        if any((place / ".git").exists() for place in (root, *root.parents)):
            # All files instead would be those, too, that git is told to ignore, such as secrets.
            raise CrewyardError(f"{root} is in a git checkout that git cannot read: {said}")
        return None
    return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]


def _walked(root: Path) -> Iterator[str]:
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _NEVER)
        base = Path(directory).relative_to(root)
        for file in files:
            yield (base / file).as_posix()


def committed(root: Path) -> str | None:
    """The commit that the directory is, without any change; None where it is none."""
    return (
        git_text(root, "rev-parse", "HEAD") if _git(root, "status", "--porcelain", "--", ".") == "" else None
    )


def git_text(root: Path, *arguments: str) -> str | None:
    """The first line that git prints; None where it fails, or prints nothing."""
    return (_git(root, *arguments) or "").partition("\n")[0].strip() or None


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(root), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode("utf-8", "replace")
