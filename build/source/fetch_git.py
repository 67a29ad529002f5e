"""One commit's tree by http(s) or ssh, by pygit2, into a checked tree. Called by build.source.fetch.

Every connection goes by a way out of ours. libgit2 is imported on the first fetch only.
"""

import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from build.errors import GIT_NOT_FOUND, Refused
from build.logs import Log
from build.settings import GitSource, Limits, Network
from build.source.git_failure import Failed, refusal
from build.source.tree import SourceTree
from egress.addresses import Rules
from egress.git.credentials import Access
from egress.git.repository_url import harmless, parse, shown

_ATTEMPTS = 4
TOTAL_SECONDS = 900.0
"""Of all attempts together."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_git(source: GitSource, access: Access, network: Network, limits: Limits, log: Log) -> SourceTree:
    """The files of `source.commit` below `source.path`. Raises Refused or Infrastructure."""
    from build.source.git_tree import read_tree

    check_url(source.url)
    if not _COMMIT.fullmatch(source.commit):
        what = f"{harmless(source.commit, 80)!r} is no commit id"
        raise Refused(GIT_NOT_FOUND, what, "A commit id has 40 hexadecimal digits.")
    rules = Rules.parse(network.allow, network.deny)
    place = Path(tempfile.mkdtemp(prefix="git-"))
    try:
        log.line(f"fetching {shown(source.url)} at {source.commit}")
        repository = _fetch(source, access, rules, limits, place, log)
        return read_tree(repository, source, limits, log)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_url(url: str) -> None:
    """Only plain https, http and ssh addresses pass. Raises Refused(GitNotFound)."""
    try:
        parse(url)
    except ValueError as error:
        hint = "Use https:// or ssh://; names and passwords belong into a Secret (source.git.secretRef)."
        raise Refused(GIT_NOT_FOUND, f"the git address {shown(url)!r}: {error}", hint) from None


def _fetch(source: GitSource, access: Access, rules: Rules, limits: Limits, place: Path, log: Log) -> Any:
    from build.source.git_remote import fetch_commit

    end = time.monotonic() + TOTAL_SECONDS
    for attempt in range(_ATTEMPTS):
        left = max(1.0, end - time.monotonic())
        try:
            return fetch_commit(
                source, access, rules, limits.context_bytes, place / str(attempt), total_timeout=left
            )
        except Failed as failed:
            if not failed.may_pass or attempt + 1 == _ATTEMPTS:
                raise refusal(failed, source, access, limits.context_bytes) from None
            log.line(f"fetching failed, trying again: {failed}")
        time.sleep(0.3 * 2**attempt)
    raise AssertionError("the last attempt has raised")
