"""pygit2 on one remote: a listing of its heads, or one commit, by a way out that is open for as long.

Called by `controller.git.client` for short listings by http, and by `controller.git.child` for all else.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pygit2

from controller.git.failure import MAX_LISTING, meaning, no_commit
from controller.git.repository import Commit, GitProblem, Head, Remote, choose, refname, subject
from egress.addresses import Rules
from egress.git.errors import Kind, trouble
from egress.git.fetch_commit import CommitMissing, fetch_one
from egress.git.remote import AccessDenied, callbacks, confine, way
from egress.git.repository_url import harmless

T = TypeVar("T")
CONNECT_SECONDS = 10
SILENCE_SECONDS = 30
_BRANCHES = 10
_CODECS = ("iso-8859-1", "iso8859-1", "latin-1", "latin1", "windows-1252", "shift_jis", "euc-jp", "gbk")
Work = Callable[[Any, Any, Callable[[], pygit2.RemoteCallbacks]], T]


class TooLong(Exception):
    """The list has more bytes than were allowed."""


def listed(
    remote: Remote, ref: Mapping[str, str], rules: Rules, seconds: float, most: int, place: Path
) -> Head:
    """Where `ref` is, by a listing of at most `most` bytes. Raises GitProblem, and TooLong.

    `place` may be that of other listings, but for ssh.
    """

    def work(_: Any, far: Any, ask: Callable[[], pygit2.RemoteCallbacks]) -> dict[str, str]:
        return relevant(far.list_heads(callbacks=ask()), ref)

    return choose(_talked(remote, rules, seconds, most, place, work), ref)


def fetched(
    remote: Remote, head: Head, path: str, rules: Rules, seconds: float, most: int, place: Path
) -> Commit:
    """Subject and tree of a commit of at most `most` bytes; the list of branches and tags may come with it.

    Raises GitProblem, and MemoryError or OSError where a limit was met.
    """

    def work(near: Any, far: Any, ask: Callable[[], pygit2.RemoteCallbacks]) -> Commit:
        name = head.name if head.name.startswith(("refs/", "HEAD")) else ""
        try:
            commit = fetch_one(near, far, head.commit, ask, name)
        except CommitMissing:
            raise no_commit(remote, head) from None
        text = commit.raw_message.decode(_codec(commit.message_encoding), "replace")
        return Commit(subject(text), _tree(commit, path))

    try:
        return _talked(remote, rules, seconds, most + MAX_LISTING, place, work)
    except TooLong:
        raise MemoryError from None


def relevant(heads: Iterable[Any], ref: Mapping[str, str]) -> dict[str, str]:
    """Of a repository's heads the one that `ref` names, and a few branches should it be missing. Pure."""
    name, kept, branches = refname(ref), dict[str, str](), 0
    for head in heads:
        found = str(head.name)
        branches += found.startswith("refs/heads/")
        if not kept or found in (name, f"{name}^{{}}") or branches <= _BRANCHES:
            kept[found] = str(head.oid)
    return kept


def _talked(remote: Remote, rules: Rules, seconds: float, most: int, place: Path, work: Work[T]) -> T:
    access = remote.access
    with way(
        remote.url,
        rules,
        access,
        connect_timeout=CONNECT_SECONDS,
        idle_timeout=SILENCE_SECONDS,
        total_timeout=seconds,
        most=most,
    ) as through:
        confine(place / "home", CONNECT_SECONDS, SILENCE_SECONDS, through, access)
        near = near_side(place)
        far = near.remotes.create_anonymous(through.address(remote.url))
        try:
            return work(near, far, lambda: callbacks(remote.url, access, through))
        except (pygit2.GitError, AccessDenied, KeyError, ValueError, OSError, MemoryError) as error:
            if exhausted(error):
                raise MemoryError from None
            found = trouble(error, remote.url, access, through)
            if found.kind is Kind.TOO_LARGE:
                raise TooLong from None
            raise meaning(found, remote, seconds) from error


def near_side(place: Path) -> pygit2.Repository:
    """The repository below `place`, made where there is none. A listing writes nothing to it."""
    path = place / "repository"
    return pygit2.Repository(str(path)) if path.exists() else pygit2.init_repository(str(path), bare=True)


def exhausted(error: Exception) -> bool:
    """Whether a limit of this process was met."""
    low = str(error).lower()
    words = ("out of memory", "cannot allocate", "failed to mmap", "failed to allocate", "file too large")
    return isinstance(error, MemoryError) or any(word in low for word in words)


def _tree(commit: pygit2.Commit, path: str) -> str:
    if not path.strip("/"):
        return str(commit.tree.id)
    found: Any = None
    with contextlib.suppress(KeyError, ValueError):
        found = commit.tree[path.strip("/")]
    if not isinstance(found, pygit2.Tree):
        raise GitProblem(
            "PathNotFound",
            f"the head has no directory {harmless(path)}; push it, or correct spec.source.git.path",
        )
    return str(found.id)


def _codec(said: str | None) -> str:
    """The encoding that a commit says it has, where it is one of letters; else UTF-8."""
    return said if said and said.lower() in _CODECS else "utf-8"
