"""pygit2 asked for exactly one commit. Called by build.fetch_git, which gives meaning to what goes wrong.

libgit2 is imported on the first fetch only.
"""

from pathlib import Path
from typing import Any

from build.errors import Infrastructure
from build.settings import GitCredentials, GitSource
from outbound.gate import Gate

_CONNECT_MS = 10_000
_SILENCE_MS = 60_000
_HERE = "refs/crewyard/source"


class Oversized(Exception):
    """The remote sent more than it may."""


class Denied(Exception):
    """The remote answered, and the answer is no. `kind` is `auth`, `repository` or `commit`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def fetch_commit(source: GitSource, credentials: GitCredentials, most: int, place: Path, gate: Gate) -> Any:
    """A bare repository at `place` that holds the commit, fetched through `gate`, at most `most` bytes.

    Shallow where the remote gives single commits; else the branch that ends in it;
    else all branches. Raises Denied, Oversized or Infrastructure.
    """
    import pygit2

    pygit2.settings.server_connect_timeout = _CONNECT_MS
    pygit2.settings.server_timeout = _SILENCE_MS
    repository = pygit2.init_repository(str(place), bare=True)
    remote = repository.remotes.create_anonymous(gate.address(source.url))
    try:
        try:
            remote.fetch([f"+{source.commit}:{_HERE}"], callbacks=_callbacks(credentials, most), depth=1)
        except (pygit2.GitError, KeyError) as error:
            if not _is_about_the_commit(str(error)):
                raise
            alone = _cannot_ask(str(error))
            _fetch_by_name(remote, source.commit, credentials, most, all_branches=alone)
        if repository.get(source.commit) is None:
            raise Denied("commit", "the commit is not there")
        return repository
    except pygit2.GitError as error:
        raise _meaning(str(error)) from None


def _fetch_by_name(
    remote: Any, commit: str, credentials: GitCredentials, most: int, all_branches: bool
) -> None:
    heads = remote.list_heads(callbacks=_callbacks(credentials, most))
    names = [
        head.name for head in heads if str(head.oid) == commit and head.name and head.name.startswith("refs/")
    ]
    if names:
        wanted, depth = [f"+{names[0]}:{_HERE}"], 1
    elif not all_branches:
        raise Denied("commit", "the remote does not have it")
    else:
        wanted, depth = ["+refs/heads/*:refs/crewyard/heads/*"], 0
    remote.fetch(wanted, callbacks=_callbacks(credentials, most), depth=depth)


def _callbacks(credentials: GitCredentials, most: int) -> Any:
    import pygit2

    class Callbacks(pygit2.RemoteCallbacks):
        asked = 0

        def credentials(self, url: str, username_from_url: str | None, allowed_types: Any) -> Any:
            self.asked += 1
            # The same answer to a second question would be a loop.
            if self.asked > 1 or not (credentials.username or credentials.password):
                raise Denied("auth", "credentials are asked for")
            return pygit2.UserPass(credentials.username, credentials.password)

        def custom_headers(self) -> list[str] | None:
            return [f"Authorization: Bearer {credentials.bearer}"] if credentials.bearer else None

        def transfer_progress(self, stats: Any) -> None:
            if stats.received_bytes > most:
                raise Oversized

    return Callbacks()


def _is_about_the_commit(text: str) -> bool:
    low = text.lower()
    # "unexpected packet type" is what libgit2 makes of the remote's own refusal.
    marks = ("not our ref", "unadvertised object", "unexpected packet type")
    return _cannot_ask(text) or any(mark in low for mark in marks)


def _cannot_ask(text: str) -> bool:
    """Whether the remote gives named branches only."""
    return "cannot fetch a specific object" in text.lower()


def _meaning(text: str) -> Denied | Infrastructure:
    low = text.lower()
    if (
        "status code: 401" in low
        or "status code: 403" in low
        or "authentication" in low
        or "credentials" in low
    ):
        return Denied("auth", text)
    if _is_about_the_commit(low) or "object not found" in low:
        return Denied("commit", text)
    if any(f"status code: {code}" in low for code in (400, 404, 405, 406, 410)) or "not found" in low:
        return Denied("repository", text)
    if "invalid content-type" in low or "unexpected content-type" in low or "invalid http response" in low:
        return Denied("repository", text)
    return Infrastructure(f"git: {text}")
