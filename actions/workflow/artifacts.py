"""Download of a run's artifacts into a directory, never outside it. Called by the action `run`."""

import errno
import hashlib
import itertools
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote

from actions.workflow.client.api import ApiClient
from actions.workflow.errors import StepFailed
from actions.workflow.file_names import download_problem

_PER_PAGE = 100
_CHUNK = 256 * 1024


class DownloadMismatch(OSError):
    """The received bytes differ from the announced size or SHA-256; retried like a broken connection."""


def list_artifacts(api: ApiClient, run: str) -> Iterator[Mapping[str, Any]]:
    """Yield the artifacts of a run, page by page."""
    for page in itertools.count(1):
        response = api.get(f"/v1/runs/{quote(run, safe='')}/artifacts?page={page}&per_page={_PER_PAGE}")
        yield from response["data"]
        if not response["pagination"]["has_more"]:
            return


class DownloadDirectory:
    """The target directory of artifacts. It replaces files of others only with `overwrite`."""

    def __init__(self, directory: Path, overwrite: bool = False, windows: bool = os.name == "nt") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._root, self._overwrite, self._windows = directory.resolve(), overwrite, windows
        self._names: dict[str, str] = {}

    def target(self, name: str) -> Path:
        """Return the file for an artifact and create its directory. Raises StepFailed for an unsafe name."""
        display = name[:200].encode("unicode_escape").decode()
        problem = download_problem(name, self._windows)
        if problem:
            raise StepFailed(f"The artifact {display} is not downloaded: {problem}.")
        other = self._names.setdefault(name.casefold(), name)
        if other != name:
            raise StepFailed(
                f"The artifact {display} is not downloaded: its name differs from another only in case."
            )
        path = self._root.joinpath(*name.split("/"))
        try:
            self._make_directories(path.parent)
            if path.is_dir() and not path.is_symlink():
                raise StepFailed(f"The artifact {display} is not downloaded: a directory has its name.")
            if os.path.lexists(path) and not self._overwrite:
                raise StepFailed(
                    f"The artifact {display} is not downloaded: the file exists. Give another "
                    "artifacts-directory, or artifacts-overwrite: true."
                )
        except OSError as error:
            raise StepFailed(
                f"The artifact {display} is not downloaded: {error.strerror or error}."
            ) from None
        return path

    def store(self, part: Path, path: Path) -> None:
        """Rename the complete file. Raises FileExistsError if another program has created the file."""
        if not self._overwrite:
            path.open("xb").close()
        part.replace(path)

    def _make_directories(self, directory: Path) -> None:
        """Create directories one by one, following no existing link out of the root."""
        at = self._root
        for part in directory.relative_to(self._root).parts:
            at = at / part
            with suppress(FileExistsError):
                at.mkdir()
            if at.resolve() != at:
                raise StepFailed(f"{at} is a link; artifacts are not downloaded through links.")
            if not at.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"the file {at} has the name of its directory")


def fetch(api: ApiClient, run: str, item: Mapping[str, Any], downloads: DownloadDirectory) -> Path:
    """Download one artifact atomically and return its path. Verifies the announced size and SHA-256."""
    name, size, sha256 = str(item["name"]), int(item["size"]), str(item["sha256"])
    path = downloads.target(name)
    part = path.with_name(f".{secrets.token_hex(8)}.part")

    def save(response: HTTPResponse) -> None:
        digest, received = hashlib.sha256(), 0
        with part.open("wb") as file:
            while chunk := response.read(_CHUNK):
                received += len(chunk)
                if received > size:
                    raise DownloadMismatch(f"more than the announced {size} bytes")
                digest.update(chunk)
                file.write(chunk)
        if received != size or digest.hexdigest() != sha256:
            raise DownloadMismatch(f"{received} of {size} bytes, not with the announced sha256")

    try:
        api.download(f"/v1/runs/{quote(run, safe='')}/artifacts/{quote(name, safe='/')}", save)
        downloads.store(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path
