"""Fetch of exactly one commit with pygit2, from any kind of server.

Most servers serve a commit by its id. Some refuse ids that no ref names: then a ref at the commit is
fetched, or all branches as a last resort. The relay bounds the cost. Called by controller.git.remote and
build.source.git_remote.
"""

from collections.abc import Callable
from typing import Any

import pygit2

from egress.git.errors import GitErrorKind, classify_text, refuses_commit_ids

_LOCAL_REF = "refs/crewyard/one"
_REFSPEC_SPECIALS = frozenset(" *:^~?[\\")

MakeCallbacks = Callable[[], pygit2.RemoteCallbacks]


class CommitMissing(Exception):
    """The remote does not have the commit or does not serve it."""


def fetch_single_commit(
    repository: Any, remote: Any, commit: str, make_callbacks: MakeCallbacks, ref: str = ""
) -> pygit2.Commit:
    """Fetch and return the commit, without its history where the remote can; `ref` is where it was seen.

    `make_callbacks` returns new callbacks for each connection. Raises CommitMissing and pygit2's errors.
    """
    try:
        remote.fetch([f"+{commit}:{_LOCAL_REF}"], callbacks=make_callbacks(), depth=1)
    except (pygit2.GitError, KeyError) as error:
        if classify_text(str(error)) is not GitErrorKind.COMMIT_NOT_FOUND:
            raise
        _fetch_by_ref(remote, commit, make_callbacks, ref, refuses_commit_ids(str(error)))
    commit_object = repository.get(commit)
    if not isinstance(commit_object, pygit2.Commit):
        raise CommitMissing(f"{commit} is {'not a commit' if commit_object is not None else 'missing'}")
    return commit_object


def _fetch_by_ref(
    remote: Any, commit: str, make_callbacks: MakeCallbacks, ref: str, branches_only: bool
) -> None:
    """Fetch `ref`, else a ref at the commit, else (where the remote serves refs only) all branches."""
    if not ref:
        ref = next(
            (
                n
                for n in _refs_at(remote.list_heads(callbacks=make_callbacks()), commit)
                if not _REFSPEC_SPECIALS & set(n)
            ),
            "",
        )
    if ref:
        remote.fetch([f"+{ref}:{_LOCAL_REF}"], callbacks=make_callbacks(), depth=1)
    elif branches_only:
        remote.fetch(["+refs/heads/*:refs/crewyard/heads/*"], callbacks=make_callbacks(), depth=0)
    else:
        raise CommitMissing("the remote does not have it")


def _refs_at(heads: list[Any], commit: str) -> list[str]:
    return [head.name for head in heads if (head.name or "").startswith("refs/") and str(head.oid) == commit]
