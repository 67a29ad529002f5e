"""One commit's tree over http(s), by pygit2, into a checked tree. Called by build.fetch.

No checkout, no hooks, no filters: blobs are read from the fetched objects. Every
connection goes through outbound.gate. Submodules and large-file pointers are not
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
from urllib.parse import urlsplit, urlunsplit

from build.errors import (
    CONTEXT_INVALID,
    CONTEXT_TOO_LARGE,
    GIT_AUTH_FAILED,
    GIT_NOT_FOUND,
    Infrastructure,
    Refused,
)
from build.git_remote import Denied, Oversized, fetch_commit
from build.logs import Log
from build.settings import GitCredentials, GitSource, Limits, Network
from build.tree import SourceTree, TreeBuilder
from outbound.addresses import Rules
from outbound.gate import Gate

_ATTEMPTS = 4
# What a remote may say beside the objects: the list of its branches and tags.
_TALK_BYTES = 16 << 20
# As long as a path can be on Linux.
_LINK_BYTES = 4095
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ACCESS = "Check the Secret named by the project's source.git.secretRef."


def fetch_git(
    source: GitSource, credentials: GitCredentials, network: Network, limits: Limits, log: Log
) -> SourceTree:
    """The files of `source.commit` below `source.path`. Raises Refused or Infrastructure."""
    check_url(source.url)
    if not _COMMIT.fullmatch(source.commit):
        raise Refused(
            GIT_NOT_FOUND, f"{source.commit!r} is no commit id", "A commit id has 40 hexadecimal digits."
        )
    rules = Rules.parse(network.allow, network.deny)
    place = Path(tempfile.mkdtemp(prefix="git-"))
    try:
        log.line(f"fetching {shown_url(source.url)} at {source.commit}")
        repository = _fetch(source, credentials, rules, limits, place, log)
        return _read(repository, source, limits, log)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_url(url: str) -> None:
    """Only plain http and https addresses pass. Raises Refused(GitNotFound)."""
    hint = "Use an https:// address; names and passwords belong into a Secret (source.git.secretRef)."
    parts = urlsplit(url)
    clean = url.isprintable() and " " not in url and "\\" not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or not clean:
        raise Refused(GIT_NOT_FOUND, f"the git address {url!r} is not an http(s) address", hint)
    if parts.hostname.startswith("-") or parts.username or parts.password:
        raise Refused(GIT_NOT_FOUND, f"the git address {shown_url(url)} holds more than host and path", hint)


def shown_url(url: str) -> str:
    """`url` without what may be a secret in it: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _fetch(
    source: GitSource, credentials: GitCredentials, rules: Rules, limits: Limits, place: Path, log: Log
) -> Any:
    where = shown_url(source.url)
    for attempt in range(_ATTEMPTS):
        with Gate(rules, most=limits.context_bytes + _TALK_BYTES, ca=credentials.ca, home=source.url) as gate:
            try:
                return fetch_commit(source, credentials, limits.context_bytes, place / str(attempt), gate)
            except (Denied, Infrastructure, Oversized) as error:
                if gate.exceeded or isinstance(error, Oversized):
                    raise Refused(
                        CONTEXT_TOO_LARGE,
                        f"{where} sends more than {limits.context_bytes} bytes for one commit",
                        "Keep large files out of the repository.",
                    ) from None
                if gate.refusals:
                    raise Refused(
                        GIT_NOT_FOUND,
                        f"{where}: {gate.refusals[0]}, and this installation does not fetch from it",
                        "Use another address, or ask an administrator to allow it (CREWYARD_NET_ALLOW).",
                    ) from None
                if gate.untrusted:
                    raise Refused(
                        GIT_AUTH_FAILED,
                        f"the certificate of {gate.untrusted[0]}",
                        "Put its authority's certificate into the Secret as ca.crt (source.git.secretRef).",
                    ) from None
                if isinstance(error, Denied):
                    used = bool(credentials.username or credentials.bearer)
                    raise _refusal(error, where, source, used) from None
                if attempt + 1 == _ATTEMPTS:
                    if gate.unknown:
                        raise Refused(
                            GIT_NOT_FOUND,
                            f"there is no host {gate.unknown[0]} ({where})",
                            "Check the address.",
                        ) from None
                    raise
                log.line(f"fetching failed, trying again: {error}")
        time.sleep(0.3 * 2**attempt)
    raise Infrastructure(f"{where} could not be fetched")


def _refusal(error: Denied, where: str, source: GitSource, with_credentials: bool) -> Refused:
    if error.kind == "auth":
        what = "refuses the credentials" if with_credentials else "asks for credentials, or does not exist"
        return Refused(GIT_AUTH_FAILED, f"{where} {what}", _ACCESS)
    if error.kind == "commit":
        return Refused(
            GIT_NOT_FOUND,
            f"{where} has no commit {source.commit}",
            "It was never pushed, or was removed by a forced push.",
        )
    return Refused(GIT_NOT_FOUND, f"{where} is no git repository ({error})", "Check the address.")


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
