"""Fetching exactly one commit with pygit2, from servers of every kind.

Most servers give a commit by its id. Some refuse ids that no reference names: then the reference that is
there is fetched and the commit looked for, at last in all branches. The way out bounds what that may cost.
Called by controller.git.remote and build.source.git_remote.
"""

from collections.abc import Callable
from typing import Any

import pygit2

from egress.git.errors import Kind, cannot_ask, told

_HERE = "refs/crewyard/one"
_SPECIAL = frozenset(" *:^~?[\\")

Ask = Callable[[], pygit2.RemoteCallbacks]


class CommitMissing(Exception):
    """The remote answered, and does not have the commit, or gives it to nobody."""


def fetch_one(repository: Any, remote: Any, commit: str, ask: Ask, name: str = "") -> pygit2.Commit:
    """The commit, fetched without its history where the remote can do that; `name` is where it was seen.

    `ask` gives callbacks, new ones for every conversation. Raises CommitMissing, and what pygit2 raises.
    """
    try:
        remote.fetch([f"+{commit}:{_HERE}"], callbacks=ask(), depth=1)
    except (pygit2.GitError, KeyError) as error:
        if told(str(error)) is not Kind.COMMIT:
            raise
        _by_name(remote, commit, ask, name, cannot_ask(str(error)))
    found = repository.get(commit)
    if not isinstance(found, pygit2.Commit):
        raise CommitMissing(f"{commit} is {'no commit' if found is not None else 'not there'}")
    return found


def _by_name(remote: Any, commit: str, ask: Ask, name: str, branches_only: bool) -> None:
    """Fetches `name`, else a reference at the commit, else all branches where that is the only way."""
    if not name:
        name = next((n for n in _at(remote.list_heads(callbacks=ask()), commit) if not _SPECIAL & set(n)), "")
    if name:
        remote.fetch([f"+{name}:{_HERE}"], callbacks=ask(), depth=1)
    elif branches_only:
        remote.fetch(["+refs/heads/*:refs/crewyard/heads/*"], callbacks=ask(), depth=0)
    else:
        raise CommitMissing("the remote does not have it")


def _at(heads: list[Any], commit: str) -> list[str]:
    return [head.name for head in heads if (head.name or "").startswith("refs/") and str(head.oid) == commit]
