"""Fetch of one commit over http(s) or ssh with pygit2 into a checked tree. Called by build.source.fetch.

Every connection passes an egress relay. libgit2 is imported on the first fetch only.
"""

import re
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any

from build.errors import GIT_NOT_FOUND, BuildRefused
from build.logs import BuildLog
from build.settings import FetchNetworks, GitSource, SourceLimits
from build.source.fetched import FetchedSource
from build.source.git_failure import GitFetchFailed, build_error
from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.repository_url import display_url, parse, printable

_MAX_ATTEMPTS = 4
TOTAL_TIMEOUT_SECONDS = 900.0
"""Of all attempts together, in seconds."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_git(
    source: GitSource,
    credentials: GitCredentials,
    networks: FetchNetworks,
    limits: SourceLimits,
    log: BuildLog,
) -> FetchedSource:
    """Return the files of `source.commit` below `source.path`. Raises BuildRefused or InfrastructureError."""
    from build.source.git_outside import GitOutsideFiles
    from build.source.git_tree import read_tree
    from egress.git.source_path import normalized_path

    check_url(source.url)
    if not _COMMIT.fullmatch(source.commit):
        message = f"{printable(source.commit, 80)!r} is not a commit id"
        raise BuildRefused(GIT_NOT_FOUND, message, "A commit id has 40 hexadecimal digits.")
    rules = AddressRules.parse(networks.allow, networks.deny)
    directory = Path(tempfile.mkdtemp(prefix="git-"))
    try:
        log.line(f"fetching {display_url(source.url)} at {source.commit}")
        repository = _fetch_with_retries(source, credentials, rules, limits, directory, log)
        tree, path = read_tree(repository, source, limits, log), normalized_path(source.path)
        if path:
            outside = GitOutsideFiles(repository, source, path, limits, log)
            # Read on access, so its objects stay as long as it does.
            weakref.finalize(outside, shutil.rmtree, directory, ignore_errors=True)
            return FetchedSource(tree, path, outside)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)
    return FetchedSource(tree)


def check_url(url: str) -> None:
    """Accept only plain https, http and ssh URLs. Raises BuildRefused(GitNotFound)."""
    try:
        parse(url)
    except ValueError as error:
        hint = "Use https:// or ssh://; put user name and password into a Secret (source.git.secretRef)."
        raise BuildRefused(GIT_NOT_FOUND, f"the git URL {display_url(url)!r}: {error}", hint) from None


def _fetch_with_retries(
    source: GitSource,
    credentials: GitCredentials,
    rules: AddressRules,
    limits: SourceLimits,
    directory: Path,
    log: BuildLog,
) -> Any:
    from build.source.git_remote import fetch_commit

    deadline = time.monotonic() + TOTAL_TIMEOUT_SECONDS
    for attempt in range(_MAX_ATTEMPTS):
        seconds = max(1.0, deadline - time.monotonic())
        try:
            return fetch_commit(
                source,
                credentials,
                rules,
                limits.context_bytes,
                directory / str(attempt),
                total_timeout=seconds,
            )
        except GitFetchFailed as failed:
            if not failed.transient or attempt + 1 == _MAX_ATTEMPTS:
                raise build_error(failed, source, credentials, limits.context_bytes) from None
            log.line(f"fetch failed, retrying: {failed}")
        time.sleep(0.3 * 2**attempt)
    raise AssertionError("the last attempt has raised")
