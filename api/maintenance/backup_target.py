"""Where a backup goes: a directory, a tar file, or standard output as tar. Called by `api.maintenance.backup`."""

import io
import os
import shutil
import sys
import tarfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO


class Target(ABC):
    """Takes files, some of them again when they have grown."""

    @abstractmethod
    def add(self, name: str, path: Path, whole: bool = False) -> tuple[int, int]:
        """Copies a file under a relative name; gives its bytes, and its lines where it is read `whole`.

        What may be written meanwhile is read whole, so that its size is known. Raises FileNotFoundError.
        """

    @abstractmethod
    def close(self) -> None:
        """All of it is on disk, or sent, when this returns."""


class Folder(Target):
    """A directory, which is new or empty."""

    def __init__(self, place: Path) -> None:
        """Raises FileExistsError."""
        place.mkdir(parents=True, exist_ok=True)
        if any(place.iterdir()):
            raise FileExistsError(f"{place} is not empty; name a new directory")
        self._place = place

    def add(self, name: str, path: Path, whole: bool = False) -> tuple[int, int]:
        """As `Target.add`."""
        with path.open("rb") as source:
            data = source.read() if whole else b""
            to = self._place / name
            to.parent.mkdir(parents=True, exist_ok=True)
            with to.open("wb") as file:
                if whole:
                    file.write(data)
                else:
                    shutil.copyfileobj(source, file, 1024 * 1024)
                file.flush()
                os.fsync(file.fileno())
                return file.tell(), data.count(b"\n")

    def close(self) -> None:
        """As `Target.close`."""


class Tar(Target):
    """A tar stream: of a file that is there twice, the later one counts."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._tar = tarfile.open(fileobj=stream, mode="w|")  # noqa: SIM115

    def add(self, name: str, path: Path, whole: bool = False) -> tuple[int, int]:
        """As `Target.add`."""
        with path.open("rb") as source:
            entry = self._tar.gettarinfo(arcname=name, fileobj=source)
            data = source.read() if whole else b""
            if whole:
                entry.size = len(data)
            self._tar.addfile(entry, io.BytesIO(data) if whole else source)
            return entry.size, data.count(b"\n")

    def close(self) -> None:
        """As `Target.close`."""
        self._tar.close()
        self._stream.flush()
        if self._stream is not sys.stdout.buffer:
            os.fsync(self._stream.fileno())
            self._stream.close()


def open_target(text: str) -> Target:
    """The target of an argument: `-`, a name that ends with `.tar`, else a directory. Raises OSError."""
    if text == "-":
        return Tar(sys.stdout.buffer)
    if text.endswith(".tar"):
        return Tar(Path(text).open("xb"))
    return Folder(Path(text))
