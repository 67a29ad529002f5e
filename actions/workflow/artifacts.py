"""A run's artifacts, brought into a directory and never outside of it. Called by the run program."""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote

from actions.workflow.client.api import Api
from actions.workflow.errors import Failed

_PER_PAGE = 100
_PAGES = 100
_CHUNK = 256 * 1024
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


class Broken(OSError):
    """What arrived is not what was announced. A broken connection, therefore: tried again."""


def listed(api: Api, run: str) -> Iterator[Mapping[str, Any]]:
    """The artifacts of a run, page by page."""
    for page in range(1, _PAGES + 1):
        found = api.get(f"/v1/runs/{quote(run, safe='')}/artifacts?page={page}&per_page={_PER_PAGE}")
        yield from found["data"]
        if not found["pagination"]["has_more"]:
            return


def problem(name: str, windows: bool) -> str | None:
    """Why a file of this name is not written; None where it may be."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in name:
        return "it is no relative path"
    if windows and (
        re.search(r'[<>:"\\|?*\x00-\x1f]', name)
        or any(_RESERVED.fullmatch(part) or part[-1] in ". " for part in parts)
    ):
        return "Windows has no such names"
    if any(part.casefold() == ".git" for part in parts):
        return "it would become part of git's own files"
    return None


class Shelf:
    """The directory that artifacts go to."""

    def __init__(self, directory: Path, windows: bool = os.name == "nt") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._root, self._windows = directory.resolve(), windows
        self._taken: dict[str, str] = {}

    def place(self, name: str) -> Path:
        """Where the file of this name goes; makes its directory. Raises Failed for a name that leads away."""
        shown = name[:200].encode("unicode_escape").decode()
        why = problem(name, self._windows)
        if why:
            raise Failed(f"The artifact {shown} is not downloaded: {why}.")
        other = self._taken.setdefault(name.casefold(), name)
        if other != name:
            raise Failed(f"The artifact {shown} is not downloaded: it differs from another one only in case.")
        place = self._root.joinpath(*name.split("/"))
        try:
            self._make(place.parent)
            if place.is_dir() and not place.is_symlink():
                raise Failed(f"The artifact {shown} is not downloaded: there is a directory of its name.")
        except OSError as error:
            raise Failed(f"The artifact {shown} is not downloaded: {error.strerror or error}.") from None
        return place

    def _make(self, directory: Path) -> None:
        """Makes directories one by one: a link among those that are there is not followed out."""
        at = self._root
        for part in directory.relative_to(self._root).parts:
            at = at / part
            with suppress(FileExistsError):
                at.mkdir()
            if at.resolve() != at:
                raise Failed(f"{at} is a link; nothing is downloaded through it.")


def fetch(api: Api, run: str, item: Mapping[str, Any], shelf: Shelf) -> Path:
    """Downloads one artifact and gives its place. It appears whole, with the announced bytes, or not."""
    name, size, sha256 = str(item["name"]), int(item["size"]), str(item["sha256"])
    place = shelf.place(name)
    waiting = place.with_name(f".{secrets.token_hex(8)}.part")

    def take(answer: HTTPResponse) -> None:
        digest, got = hashlib.sha256(), 0
        with waiting.open("wb") as file:
            while chunk := answer.read(_CHUNK):
                got += len(chunk)
                if got > size:
                    raise Broken(f"more than the announced {size} bytes")
                digest.update(chunk)
                file.write(chunk)
        if got != size or digest.hexdigest() != sha256:
            raise Broken(f"{got} of {size} bytes, not with the announced sha256")

    try:
        api.download(f"/v1/runs/{quote(run, safe='')}/artifacts/{quote(name, safe='/')}", take)
        waiting.replace(place)
    finally:
        waiting.unlink(missing_ok=True)
    return place
