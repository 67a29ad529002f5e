"""The source tree to lint or deploy: which files belong to it. Called by `lint` and `deploy`.

In a git checkout: tracked files, also of submodules that are checked out, and untracked files that git does
not ignore. Elsewhere: all files except
caches, virtual environments and version control directories.
"""

import itertools
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from crewyard.errors import LocalFileError

MAX_FILES = 50_000
_EXCLUDED_NAMES = {
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
_SECRET_FILES = {".env"}
_GIT_TIMEOUT_SECONDS = 120
# Do not start programs that the repository's configuration names: the checkout may be untrusted.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false")


class SourceTree(Mapping[str, bytes]):
    """Mapping of relative paths (with /) to contents, read on access."""

    def __init__(self, root: Path, paths: list[str]) -> None:
        self.root = root
        self._paths = dict.fromkeys(sorted(paths, key=str.encode))

    def file_path(self, path: str) -> Path:
        """Return the file of a relative path."""
        return self.root.joinpath(*path.split("/"))

    def __getitem__(self, path: str) -> bytes:
        if path not in self._paths:
            raise KeyError(path)
        return self.file_path(path).read_bytes()

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def read_tree(directory: Path) -> SourceTree:
    """Return the source tree of a directory. Raises LocalFileError if it is empty or has too many files."""
    root = directory.resolve()
    listed = _git_files(root)
    included = (path for path in (_walk(root) if listed is None else listed) if _belongs(root, path))
    paths = list(itertools.islice(included, MAX_FILES + 1))
    for path in paths:
        if not _is_text(path):
            raise LocalFileError(f"the file name {path!r} is not UTF-8; rename it, or add it to .gitignore")
    if not paths:
        raise LocalFileError(f"{directory} has no files to deploy")
    if len(paths) > MAX_FILES:
        raise LocalFileError(f"{directory} has more than {MAX_FILES} files; is it the directory of the crew?")
    return SourceTree(root, paths)


def read_outside(directory: Path) -> tuple[str, SourceTree | None]:
    """Return the directory's path in its git repository and the repository's other files, if any."""
    root = directory.resolve()
    top = git_text(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top) == root or not root.is_relative_to(top):
        return "", None
    base = root.relative_to(top).as_posix()
    listed = _git_files(Path(top)) or []
    outside = (
        path
        for path in listed
        if not path.startswith(f"{base}/") and _is_text(path) and _belongs(Path(top), path)
    )
    return base, SourceTree(Path(top), list(itertools.islice(outside, MAX_FILES)))


def _belongs(root: Path, path: str) -> bool:
    """Return whether the path is a file of the tree: not a link out of it, not a file of secrets."""
    parts = path.split("/")
    if parts[-1] in _SECRET_FILES or any(part in _EXCLUDED_NAMES for part in parts):
        return False
    file = root.joinpath(*parts)
    try:
        return file.is_file() and file.resolve().is_relative_to(root)
    except OSError:
        return False


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _git_files(root: Path) -> list[str] | None:
    """Return git's files below the directory; None if it is not a checkout. Raises LocalFileError."""
    paths: list[str] = []
    # git does not list both at once where it enters submodules.
    for options in (("--cached", "--recurse-submodules"), ("--others", "--exclude-standard")):
        try:
            done = subprocess.run(
                [*_GIT, "-C", str(root), "ls-files", "-z", *options],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_GIT_TIMEOUT_SECONDS,
                check=False,
            )
            failure = done.stderr.decode("utf-8", "replace").partition("\n")[0] if done.returncode else None
        except (OSError, subprocess.TimeoutExpired) as error:
            failure = str(error)
        if failure is not None:
            if any((parent / ".git").exists() for parent in (root, *root.parents)):
                # Do not fall back to all files: that would include ignored ones, such as secrets.
                raise LocalFileError(f"{root} is in a git checkout that git cannot read: {failure}")
            return None
        paths += [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]
    return paths


def _walk(root: Path) -> Iterator[str]:
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _EXCLUDED_NAMES)
        base = Path(directory).relative_to(root)
        for file in files:
            yield (base / file).as_posix()


def clean_commit(root: Path) -> str | None:
    """Return the commit of the checkout; None if the directory has changes or is not a checkout."""
    return (
        git_text(root, "rev-parse", "HEAD") if _git(root, "status", "--porcelain", "--", ".") == "" else None
    )


def git_text(root: Path, *arguments: str) -> str | None:
    """Return the first line that git prints; None if git fails or prints nothing."""
    return (_git(root, *arguments) or "").partition("\n")[0].strip() or None


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(root), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode("utf-8", "replace")
