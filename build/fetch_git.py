"""One commit's tree by http(s) or ssh, by pygit2, into a checked tree. Called by build.fetch.

No checkout, no hooks, no filters: blobs are read from the fetched objects. Every
connection goes by a way out of ours. Submodules and large-file pointers are not
followed; a symbolic link becomes a copy of the file of the tree it points to.
"""

import io
import posixpath
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from build.errors import CONTEXT_INVALID, GIT_NOT_FOUND, Refused
from build.git_failure import Failed, refusal
from build.logs import Log
from build.settings import GitSource, Limits, Network
from build.tree import SourceTree, TreeBuilder
from outbound.access import Access
from outbound.addresses import Rules
from outbound.repository_url import harmless, parse, shown

_ATTEMPTS = 4
TOTAL_SECONDS = 900.0
"""Of all attempts together."""
# As long as a path can be on Linux.
_LINK_BYTES = 4095
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_git(source: GitSource, access: Access, network: Network, limits: Limits, log: Log) -> SourceTree:
    """The files of `source.commit` below `source.path`. Raises Refused or Infrastructure."""
    check_url(source.url)
    if not _COMMIT.fullmatch(source.commit):
        what = f"{harmless(source.commit, 80)!r} is no commit id"
        raise Refused(GIT_NOT_FOUND, what, "A commit id has 40 hexadecimal digits.")
    rules = Rules.parse(network.allow, network.deny)
    place = Path(tempfile.mkdtemp(prefix="git-"))
    try:
        log.line(f"fetching {shown(source.url)} at {source.commit}")
        repository = _fetch(source, access, rules, limits, place, log)
        return _read(repository, source, limits, log)
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
    from build.git_remote import fetch_commit

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


def _read(repository: Any, source: GitSource, limits: Limits, log: Log) -> SourceTree:
    import pygit2

    tree = repository[source.commit].peel(pygit2.Tree)
    below = posixpath.normpath(source.path.strip("/") or ".")
    if below != ".":
        try:
            tree = tree[below]
        except (KeyError, ValueError):
            tree = None
        if not isinstance(tree, pygit2.Tree):
            raise Refused(
                GIT_NOT_FOUND,
                f"commit {source.commit} has no directory {source.path!r}",
                "Check the project's source.git.path.",
            )
    builder = TreeBuilder(limits)
    waiting = [("", tree)]
    while waiting:
        prefix, current = waiting.pop()
        for item in current:
            builder.count()
            path = prefix + item.name
            if item.filemode == pygit2.enums.FileMode.TREE:
                waiting.append((f"{path}/", item))
            elif item.filemode == pygit2.enums.FileMode.COMMIT:
                log.line(f"{path} is a submodule: not fetched")
            else:
                if item.filemode == pygit2.enums.FileMode.LINK:
                    item = _followed(repository, tree, path, item)
                executable = item.filemode == pygit2.enums.FileMode.BLOB_EXECUTABLE
                # The size first: a small pack may hold an enormous object.
                builder.expect(repository.odb.read_header(item.id)[1])
                builder.add(path, io.BytesIO(item.data), executable)
    return builder.finish()


def _followed(repository: Any, root: Any, path: str, link: Any) -> Any:
    """The file of the tree that a symbolic link leads to, through at most 8 links."""
    import pygit2

    place, item = path, link
    for _ in range(8):
        if repository.odb.read_header(item.id)[1] > _LINK_BYTES:
            break  # before it is read: a small pack may hold an enormous object
        target = item.data.decode("utf-8", "replace")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        if target.startswith("/") or place.partition("/")[0] == "..":
            break
        try:
            item = root[place]
        except (KeyError, ValueError):
            break
        if not isinstance(item, pygit2.Blob):
            break
        if item.filemode != pygit2.enums.FileMode.LINK:
            return item
    raise Refused(
        CONTEXT_INVALID,
        f"{path} is a symbolic link that leads to no file of the source",
        "Replace the link by a copy of what it points to, or remove it.",
    )
