"""The source tree to lint or deploy: which files belong to it. Called by `lint` and `deploy`.

In a git checkout: tracked files, also of submodules that are checked out, and untracked files that git does
not ignore. Elsewhere: all files except caches, virtual environments and version control directories. A
symbolic link stands for the file or directory of the tree that it points to.
"""

import bisect
import itertools
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from crewyard.errors import LocalFileError

MAX_FILES = 1_000_000
"""The greatest limit `entries` that an installation can have; the build refuses more than its own."""
_UNUSUAL_FILES = 50_000
_EXCLUDED_NAMES = {
    ".crewyard",
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
_MAX_LINKS = 8
"""Links on the way to a file, as in a build from git."""
_MAX_NOTES = 20
_GIT_TIMEOUT_SECONDS = 120
# Do not start programs that the repository's configuration names: the checkout may be untrusted.
_SETTINGS = ("core.fsmonitor=false", "log.showSignature=false", f"core.hooksPath={os.devnull}")
_GIT = ("git", "--no-optional-locks", *(part for setting in _SETTINGS for part in ("-c", setting)))
_OTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")
"""Set in a hook of a worktree or a submodule: git would take the directory for the root of that repository,
and its ignored files for new ones."""


class SourceTree(Mapping[str, bytes]):
    """Mapping of relative paths (with /) to contents, read on access. `notes` state what was left out."""

    def __init__(self, root: Path, paths: list[str], notes: Sequence[str] = ()) -> None:
        self.root, self.notes = root, tuple(notes)
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
    included = (name for name in (_walk(root) if listed is None else listed) if not _is_excluded(name))
    names = list(itertools.islice(included, MAX_FILES + 1))
    for name in names:
        if not _is_text(name):
            raise LocalFileError(f"the file name {name!r} is not UTF-8; rename it, or add it to .gitignore")
    paths, broken = _with_targets(root, names)
    if not paths:
        raise LocalFileError(f"{directory} has no files to deploy")
    if max(len(paths), len(names)) > MAX_FILES:
        raise LocalFileError(f"{directory} has more than {MAX_FILES} files; is it the directory of the crew?")
    notes = [
        f"{path} is a symbolic link that does not point to a file or directory of {root.name}: left out"
        for path in broken[:_MAX_NOTES]
    ]
    if len(broken) > _MAX_NOTES:
        notes.append(f"{len(broken) - _MAX_NOTES} more symbolic links are left out")
    if len(paths) > _UNUSUAL_FILES:
        notes.append(f"{directory} has {len(paths)} files; is it the directory of the crew?")
    return SourceTree(root, paths, notes)


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
        if not path.startswith(f"{base}/")
        and _is_text(path)
        and not _is_excluded(path)
        and _is_file(Path(top), path)
    )
    return base, SourceTree(Path(top), list(itertools.islice(outside, MAX_FILES)))


def _with_targets(root: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files of the tree, those below linked directories included, and the links left out.

    Reads at most one file more than allowed.
    """
    ordered, known = sorted(names), set(names)
    pending = [(name, name, 0) for name in reversed(ordered)]
    paths, broken = list[str](), list[str]()
    while pending and len(paths) + len(broken) <= MAX_FILES:
        path, name, links = pending.pop()
        if not (root / name).is_symlink():
            if _is_file(root, name):
                paths.append(path)
            continue
        target = _link_target(root, name) if links < _MAX_LINKS else None
        if target in known:
            paths.append(path)
        elif target is not None and (below := _below(ordered, f"{target}/")):
            pending += [(path + inner.removeprefix(target), inner, links + 1) for inner in reversed(below)]
        else:
            broken.append(path)
    return paths, broken


def _below(ordered: Sequence[str], prefix: str) -> list[str]:
    """Return the names that start with the prefix, of sorted ones."""
    rest = itertools.islice(ordered, bisect.bisect_left(ordered, prefix), None)
    return list(itertools.takewhile(lambda name: name.startswith(prefix), rest))


def _link_target(root: Path, name: str) -> str | None:
    """Return the path in the tree that a link leads to; None outside of it, to secrets, or to a parent."""
    try:
        target = (root / name).resolve(strict=True).relative_to(root).as_posix()
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
        return None
    is_parent = target == "." or f"{name}/".startswith(f"{target}/")
    return None if is_parent or _is_excluded(target) else target


def _is_excluded(path: str) -> bool:
    parts = path.split("/")
    return parts[-1] in _SECRET_FILES or any(part in _EXCLUDED_NAMES for part in parts)


def _is_file(root: Path, path: str) -> bool:
    """Return whether the path is a file, and not below a link that leads out of the tree."""
    file = root / path
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
            done = _run(root, "ls-files", "-z", *options)
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
        # os.walk lists a link to a directory among the directories and does not enter it.
        for file in (*files, *(name for name in names if Path(directory, name).is_symlink())):
            yield (base / file).as_posix()


def clean_commit(root: Path) -> str | None:
    """Return the commit of the checkout; None if the directory has changes or is not a checkout."""
    return git_text(root, "rev-parse", "HEAD") if _is_clean(root) else None


def _is_clean(root: Path) -> bool:
    """Return whether git finds no changes, without the filters that the repository's configuration names."""
    listed = _git(root, "config", "--show-scope", "--name-only", "-z", "--list")
    scopes_and_names = (listed or "").split("\0")
    pairs = zip(scopes_and_names[::2], scopes_and_names[1::2], strict=False)
    filters = [name for scope, name in pairs if scope in ("local", "worktree") and name.startswith("filter.")]
    # `-c` cannot set a name with "=", nor one that is not UTF-8.
    if listed is None or any("=" in name or "\ufffd" in name for name in filters):
        return False
    unset = [part for name in filters for part in ("-c", f"{name}=")]
    # The settings of the user may hide files that are packed.
    options = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
    if _git(root, *unset, "status", *options, "--", ".") != "":
        return False
    # Each submodule has its own configuration.
    entries = (_git(root, "ls-files", "-z", "--stage") or "").split("\0")
    submodules = (root / entry.partition("\t")[2] for entry in entries if entry.startswith("160000 "))
    return all(_is_clean(path) for path in submodules if (path / ".git").exists())


def git_text(root: Path, *arguments: str) -> str | None:
    """Return the first line that git prints; None if git fails or prints nothing."""
    return (_git(root, *arguments) or "").partition("\n")[0].strip() or None


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = _run(root, *arguments)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode("utf-8", "replace")


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Execute git on the repository of the directory. Raises OSError, subprocess.TimeoutExpired."""
    # Else Windows takes a git.exe of the current directory, which may be an untrusted checkout.
    os.environ.setdefault("NoDefaultCurrentDirectoryInExePath", "1")
    return subprocess.run(
        [*_GIT, "-C", str(root), *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=_GIT_TIMEOUT_SECONDS,
        check=False,
        # Fetch no missing objects: the repository's configuration names the program that would.
        env={name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
        | {"GIT_ALLOW_PROTOCOL": "none"},
    )
