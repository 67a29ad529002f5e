"""Targets of a backup: directory, tar file, or tar on standard output. Called by `api.maintenance.backup`."""

import io
import os
import shutil
import sys
import tarfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO


class BackupTarget(ABC):
    """Destination of the copied files. A file that has grown is added again."""

    @abstractmethod
    def add(self, name: str, path: Path, whole: bool = False) -> tuple[int, int]:
        """Copy a file under a relative name. Return its size, and its number of lines if read `whole`.

        A file that another process may append to is read `whole`, to know its size. Raises FileNotFoundError.
        """

    @abstractmethod
    def close(self) -> None:
        """Finish the backup. On return all files are on disk or sent."""


class DirectoryTarget(BackupTarget):
    """A new or empty directory."""

    def __init__(self, directory: Path) -> None:
        """Create the directory. Raises FileExistsError."""
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise FileExistsError(f"{directory} is not empty; name a new directory")
        self._directory = directory

    def add(self, name: str, path: Path, whole: bool = False) -> tuple[int, int]:
        """Implement `BackupTarget.add`."""
        with path.open("rb") as source:
            data = source.read() if whole else b""
            target = self._directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                if whole:
                    file.write(data)
                else:
                    shutil.copyfileobj(source, file, 1024 * 1024)
                file.flush()
                os.fsync(file.fileno())
                return file.tell(), data.count(b"\n")

    def close(self) -> None:
        """Implement `BackupTarget.close`."""


class TarTarget(BackupTarget):
    """A tar stream. If a name occurs twice, the later entry wins."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._tar = tarfile.open(fileobj=stream, mode="w|")  # noqa: SIM115

    def add(self, name: str, path: Path, whole: bool = False) -> tuple[int, int]:
        """Implement `BackupTarget.add`."""
        with path.open("rb") as source:
            entry = self._tar.gettarinfo(arcname=name, fileobj=source)
            data = source.read() if whole else b""
            if whole:
                entry.size = len(data)
            self._tar.addfile(entry, io.BytesIO(data) if whole else source)
            return entry.size, data.count(b"\n")

    def close(self) -> None:
        """Implement `BackupTarget.close`."""
        self._tar.close()
        self._stream.flush()
        if self._stream is not sys.stdout.buffer:
            os.fsync(self._stream.fileno())
            self._stream.close()


def open_target(text: str) -> BackupTarget:
    """Open the target of an argument: `-`, a name that ends with `.tar`, or a directory. Raises OSError."""
    if text == "-":
        return TarTarget(sys.stdout.buffer)
    if text.endswith(".tar"):
        return TarTarget(Path(text).open("xb"))
    return DirectoryTarget(Path(text))
