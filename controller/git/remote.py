"""pygit2 calls to one remote through a relay: list heads, or fetch one commit.

Called by `controller.git.client` for short HTTP listings, and by `controller.git.child` for all others.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pygit2

from controller.git.failure import MAX_LISTING_BYTES, no_commit, problem_of
from controller.git.repository import CommitInfo, Remote, RemoteHead, choose_head, refname
from controller.git.source_tree import source_tree
from egress.addresses import AddressRules
from egress.git.commit_subject import subject_of
from egress.git.errors import GitErrorKind, classify
from egress.git.fetch_commit import CommitMissing, fetch_single_commit
from egress.git.remote import AccessDenied, callbacks, configure_libgit2, relay_for

T = TypeVar("T")
CONNECT_TIMEOUT_SECONDS = 10
IDLE_TIMEOUT_SECONDS = 30
_MAX_BRANCHES = 10
Work = Callable[[Any, Any, Callable[[], pygit2.RemoteCallbacks]], T]


class ListingTooLong(Exception):
    """The list exceeds its byte limit."""


def list_head(
    remote: Remote,
    ref: Mapping[str, str],
    rules: AddressRules,
    seconds: float,
    max_bytes: int,
    work_dir: Path,
) -> RemoteHead:
    """Return the head of `ref`, from a listing of at most `max_bytes`. Raises GitProblem and ListingTooLong.

    Parallel listings may share `work_dir`, except over SSH.
    """

    def work(_: Any, far: Any, ask: Callable[[], pygit2.RemoteCallbacks]) -> dict[str, str]:
        return relevant_heads(far.list_heads(callbacks=ask()), ref)

    return choose_head(_with_remote(remote, rules, seconds, max_bytes, work_dir, work), ref)


def fetch_commit(
    remote: Remote,
    head: RemoteHead,
    path: str,
    rules: AddressRules,
    seconds: float,
    max_bytes: int,
    work_dir: Path,
) -> CommitInfo:
    """Return subject and tree of a commit of at most `max_bytes`, not counting the list of references.

    Raises GitProblem, and MemoryError or OSError at a limit.
    """

    def work(near: Any, far: Any, ask: Callable[[], pygit2.RemoteCallbacks]) -> CommitInfo:
        name = head.name if head.name.startswith(("refs/", "HEAD")) else ""
        try:
            commit = fetch_single_commit(near, far, head.commit, ask, name)
        except CommitMissing:
            raise no_commit(remote, head) from None
        return CommitInfo(subject_of(commit), source_tree(near, commit, path))

    try:
        return _with_remote(remote, rules, seconds, max_bytes + MAX_LISTING_BYTES, work_dir, work)
    except ListingTooLong:
        raise MemoryError from None


def relevant_heads(heads: Iterable[Any], ref: Mapping[str, str]) -> dict[str, str]:
    """Return the head that `ref` names, and a few branches in case it is missing. Pure."""
    name, relevant, branches = refname(ref), dict[str, str](), 0
    for head in heads:
        ref_name = str(head.name)
        branches += ref_name.startswith("refs/heads/")
        if not relevant or ref_name in (name, f"{name}^{{}}") or branches <= _MAX_BRANCHES:
            relevant[ref_name] = str(head.oid)
    return relevant


def _with_remote(
    remote: Remote, rules: AddressRules, seconds: float, max_bytes: int, work_dir: Path, work: Work[T]
) -> T:
    access = remote.access
    with relay_for(
        remote.url,
        rules,
        access,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        idle_timeout=IDLE_TIMEOUT_SECONDS,
        total_timeout=seconds,
        max_bytes=max_bytes,
    ) as through:
        configure_libgit2(work_dir / "home", CONNECT_TIMEOUT_SECONDS, IDLE_TIMEOUT_SECONDS, through, access)
        near = local_repository(work_dir)
        far = near.remotes.create_anonymous(through.local_url(remote.url))
        try:
            return work(near, far, lambda: callbacks(remote.url, access, through))
        except (pygit2.GitError, AccessDenied, KeyError, ValueError, OSError, MemoryError) as error:
            if hit_limit(error):
                raise MemoryError from None
            failure = classify(error, remote.url, access, through)
            if failure.kind is GitErrorKind.TOO_LARGE:
                raise ListingTooLong from None
            raise problem_of(failure, remote, seconds) from error


def local_repository(work_dir: Path) -> pygit2.Repository:
    """Return the repository in `work_dir`; create it if missing. A listing writes nothing to it."""
    path = work_dir / "repository"
    return pygit2.Repository(str(path)) if path.exists() else pygit2.init_repository(str(path), bare=True)


def hit_limit(error: Exception) -> bool:
    """Return whether the error is a resource limit of this process."""
    low = str(error).lower()
    words = ("out of memory", "cannot allocate", "failed to mmap", "failed to allocate", "file too large")
    # What follows is the server's own text.
    if low.startswith("remote error:"):
        return False
    return isinstance(error, MemoryError) or any(word in low for word in words)
