"""Target directory of `crewyard artifacts --download`: which names it takes, and whose files it replaces."""

import hashlib
import os
from pathlib import Path

from crewyard.errors import LocalFileError
from crewyard.plan.file_names import download_problem


class ArtifactDirectory:
    """A directory for the artifacts of one run. It replaces files of others only with `force`."""

    def __init__(self, directory: Path, force: bool, windows: bool = os.name == "nt") -> None:
        self._directory, self._force, self._windows = directory, force, windows
        self._stored: dict[tuple[int, int], str] = {}

    def find(self, name: str, size: int, sha256: str) -> Path | None:
        """Return the file of an artifact if it has its bytes, as after a download that was interrupted."""
        path = self._directory.resolve().joinpath(*name.split("/"))
        if download_problem(name, self._windows) or not path.is_file() or path.resolve() != path:
            return None
        if path.stat().st_size != size:
            return None
        with path.open("rb") as file:
            return path if hashlib.file_digest(file, "sha256").hexdigest() == sha256 else None

    def target(self, name: str) -> Path:
        """Return the file for an artifact; create nothing. Raises LocalFileError if it is not allowed."""
        problem = download_problem(name, self._windows)
        if problem:
            raise LocalFileError(f"the artifact {name!r} cannot be written here: {problem}")
        root = self._directory.resolve()
        path = root.joinpath(*name.split("/"))
        existing = next(parent for parent in path.parents if parent.exists())
        if existing.resolve() != existing:
            raise LocalFileError(f"{existing} is a link; artifacts are not downloaded through links")
        if existing != root and not existing.is_dir():
            raise LocalFileError(f"the artifact {name!r} cannot be written here: {existing} is a file")
        if path.is_dir() and not path.is_symlink():
            raise LocalFileError(f"the artifact {name!r} cannot be written here: {path} is a directory")
        if os.path.lexists(path) and not self._force and self._owner(path) is None:
            raise LocalFileError(f"{path} exists; give another directory, or --force to replace it")
        return path

    def store(self, part: Path, path: Path, name: str) -> None:
        """Rename the complete file. Raises LocalFileError if another file has that name (`a.md`, `A.md`)."""
        owner = self._owner(path)
        if owner is not None:
            raise LocalFileError(
                f"{name} and {owner} are the same name here; download them into two directories"
            )
        if not self._force:
            try:
                path.open("xb").close()  # another program may have created it
            except FileExistsError:
                raise LocalFileError(
                    f"{path} exists; give another directory, or --force to replace it"
                ) from None
        part.replace(path)
        status = path.stat()
        self._stored[status.st_dev, status.st_ino] = name

    def _owner(self, path: Path) -> str | None:
        """Return the artifact that this call has stored under the path."""
        if not path.exists():
            return None
        status = path.stat()
        return self._stored.get((status.st_dev, status.st_ino))
