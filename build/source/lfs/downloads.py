"""Files of Git LFS over its batch API, with the transfer `basic`. Called by build.source.git_tree.

A file that its server does not give, for a full quota or without access, stays a pointer, and a line of the
log says why: often a crew does not need it. An unavailable server fails the build, which is tried again.
"""

import base64
import fnmatch
import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from build.errors import InfrastructureError
from build.source.git_config import read_git_config
from build.source.git_fetcher import GitFetcher
from build.source.lfs.requests import RequestRefused, open_url
from build.source.submodules.fetches import Checkout
from egress.git.credentials import GitCredentials
from egress.git.repository_url import parse, printable
from plan.lfs_pointer import LfsPointer

MAX_FILES = 1000
_BATCH_FILES = 100
_MAX_BATCH_BYTES = 4 << 20
_MAX_ATTEMPTS = 3
_CHUNK_BYTES = 256 << 10
_MEDIA_TYPE = "application/vnd.git-lfs+json"


class LfsDownloads:
    """The large files of one source: at most `MAX_FILES`, within the bytes of the fetcher."""

    def __init__(self, fetcher: GitFetcher) -> None:
        self._fetcher = fetcher
        self._directory = fetcher.directory / "lfs"
        self._files: dict[str, Path] = {}
        self._count = 0

    def download(self, checkout: Checkout, files: Mapping[str, LfsPointer]) -> dict[str, Path | str]:
        """Return, for each path of `files`, the downloaded file or why there is none.

        Raises InfrastructureError, and BuildRefused for an invalid `.lfsconfig`.
        """
        config = read_git_config(checkout.repository, checkout.root, ".lfsconfig")
        excluded = [pattern.strip() for pattern in config.get("lfs.fetchexclude", "").split(",")]
        results: dict[str, Path | str] = {}
        wanted: dict[str, LfsPointer] = {}
        for path, pointer in files.items():
            if any(_matches(path, pattern) for pattern in excluded if pattern):
                results[path] = "excluded by lfs.fetchexclude in .lfsconfig"
            elif pointer.oid not in self._files:
                wanted[pointer.oid] = pointer
        problems = self._download_all(config.get("lfs.url") or _endpoint(checkout.url), wanted.values())
        for path, pointer in files.items():
            if path not in results:
                results[path] = self._files.get(pointer.oid) or problems[pointer.oid]
        return results

    def _download_all(self, endpoint: str, wanted: Iterable[LfsPointer]) -> dict[str, str]:
        """Download what the limits allow; return why the others are missing."""
        problems: dict[str, str] = {}
        chosen: list[LfsPointer] = []
        bytes_left = self._fetcher.bytes_left
        for pointer in wanted:
            if self._count >= MAX_FILES:
                problems[pointer.oid] = f"the source has more than {MAX_FILES} such files"
            elif pointer.size > bytes_left:
                problems[pointer.oid] = f"its {pointer.size} bytes exceed what is left of context_bytes"
            else:
                self._count += 1
                bytes_left -= pointer.size
                chosen.append(pointer)
        for start in range(0, len(chosen), _BATCH_FILES):
            batch = chosen[start : start + _BATCH_FILES]
            try:
                parse(endpoint)
                actions = self._retried(lambda batch=batch: self._ask(endpoint, batch))
            except (RequestRefused, ValueError) as error:
                problems |= {pointer.oid: str(error) for pointer in batch}
                continue
            for pointer in batch:
                try:
                    action = _download_action(actions.get(pointer.oid))
                    self._retried(
                        lambda pointer=pointer, action=action: self._download(endpoint, pointer, action)
                    )
                except RequestRefused as error:
                    problems[pointer.oid] = str(error)
        return problems

    def _retried(self, work: Any) -> Any:
        for attempt in range(_MAX_ATTEMPTS):
            pause = 0.3 * 2**attempt
            try:
                return work()
            except InfrastructureError:
                if attempt + 1 == _MAX_ATTEMPTS or not self._fetcher.has_time_for_retry(pause):
                    raise
                time.sleep(pause)
        raise AssertionError("the last attempt has raised")

    def _ask(self, endpoint: str, batch: list[LfsPointer]) -> dict[str, Any]:
        """Return the server's answers by oid. Raises RequestRefused or InfrastructureError."""
        credentials = self._fetcher.credentials_for(endpoint)
        body = {
            "operation": "download",
            "transfers": ["basic"],
            "hash_algo": "sha256",
            "objects": [{"oid": pointer.oid, "size": pointer.size} for pointer in batch],
        }
        headers = {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE, **_authorization(credentials)}
        with self._open(
            f"{endpoint.rstrip('/')}/objects/batch", headers, _MAX_BATCH_BYTES, json.dumps(body).encode()
        ) as response:
            data = response.read(_MAX_BATCH_BYTES)
        try:
            return {str(answer["oid"]): answer for answer in json.loads(data)["objects"]}
        except (ValueError, KeyError, TypeError):
            raise RequestRefused("the server does not speak the API of Git LFS") from None

    def _download(self, endpoint: str, pointer: LfsPointer, action: tuple[str, dict[str, str]]) -> None:
        url, headers = action
        if not any(name.lower() == "authorization" for name in headers) and _server(url) == _server(endpoint):
            headers = {**headers, **_authorization(self._fetcher.credentials_for(endpoint))}
        self._directory.mkdir(exist_ok=True)
        path = self._directory / pointer.oid
        digest, size = hashlib.sha256(), 0
        with path.open("wb") as file, self._open(url, headers, pointer.size) as response:
            while size <= pointer.size and (chunk := response.read(_CHUNK_BYTES)):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        if size < pointer.size:
            raise InfrastructureError(f"git LFS: {size} of {pointer.size} bytes of {pointer.oid} arrived")
        if size > pointer.size or digest.hexdigest() != pointer.oid:
            raise RequestRefused("the server sends another file than the pointer names")
        self._fetcher.bytes_left -= size
        self._files[pointer.oid] = path

    def _open(self, url: str, headers: Mapping[str, str], max_bytes: int, body: bytes | None = None) -> Any:
        fetcher = self._fetcher
        ca = fetcher.credentials_for(fetcher.source_url).ca
        return open_url(url, headers, fetcher.rules, ca, max_bytes, fetcher.seconds_left(), body)


def _endpoint(url: str) -> str:
    """Return the LFS server of the repository at `url`, as git-lfs finds it; for ssh, that of https."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    path = path if path.endswith(".git") else f"{path}.git"
    if parts.scheme == "ssh":
        return urlunsplit(("https", parts.hostname or "", f"{path}/info/lfs", "", ""))
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/info/lfs", "", ""))


def _download_action(answer: Any) -> tuple[str, dict[str, str]]:
    """Return URL and headers of the server's answer for one file. Raises RequestRefused."""
    try:
        if answer.get("error"):
            error = answer["error"]
            raise RequestRefused(printable(f"the server answers {error.get('code')} {error.get('message')}"))
        action = answer["actions"]["download"]
        headers = {str(name): str(value) for name, value in (action.get("header") or {}).items()}
        return str(action["href"]), headers
    except (AttributeError, KeyError, TypeError):
        raise RequestRefused("the server offers no download") from None


def _authorization(credentials: GitCredentials) -> dict[str, str]:
    if credentials.bearer:
        return {"Authorization": f"Bearer {credentials.bearer}"}
    if credentials.username or credentials.password:
        pair = f"{credentials.username or 'git'}:{credentials.password}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _matches(path: str, pattern: str) -> bool:
    """Return whether a pattern of lfs.fetchexclude names the file or a directory above it."""
    directory = pattern.rstrip("/").removesuffix("/**").removesuffix("/*")
    return fnmatch.fnmatchcase(path, pattern) or path.startswith(f"{directory}/")
