"""Fetch of exactly one commit with pygit2. Called by build.source.fetch_git, which translates the errors.

Importing this module imports libgit2; it happens on the first fetch.
"""

from pathlib import Path
from typing import Any

import pygit2

from build.settings import GitSource
from build.source.git_failure import GitFetchFailed
from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.errors import GitErrorKind, GitFailure, classify
from egress.git.fetch_commit import CommitMissing, fetch_single_commit
from egress.git.remote import AccessDenied, TransferTooLarge, callbacks, configure_libgit2, relay_for
from egress.git.repository_url import printable

CONNECT_TIMEOUT_SECONDS = 10
IDLE_TIMEOUT_SECONDS = 60
# Allowance for everything but the objects: the list of branches and tags.
_PROTOCOL_BYTES = 24 << 20


def fetch_commit(
    source: GitSource,
    credentials: GitCredentials,
    rules: AddressRules,
    max_bytes: int,
    directory: Path,
    **limits: Any,
) -> pygit2.Repository:
    """Fetch a commit of at most `max_bytes` into a new repository below the empty `directory`.

    `limits` override the limits of the relay. Raises GitFetchFailed.
    """
    defaults = {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "idle_timeout": IDLE_TIMEOUT_SECONDS,
        "max_bytes": max_bytes + _PROTOCOL_BYTES,
    }
    with relay_for(source.url, rules, credentials, **{**defaults, **limits}) as relay:
        configure_libgit2(
            directory / "home", CONNECT_TIMEOUT_SECONDS, IDLE_TIMEOUT_SECONDS, relay, credentials
        )
        repository = pygit2.init_repository(str(directory / "repository"), bare=True)
        remote = repository.remotes.create_anonymous(relay.local_url(source.url))
        try:
            fetch_single_commit(
                repository,
                remote,
                source.commit,
                lambda: callbacks(source.url, credentials, relay, max_bytes),
            )
        except TransferTooLarge:
            raise GitFetchFailed(GitFailure(GitErrorKind.TOO_LARGE)) from None
        except CommitMissing:
            raise GitFetchFailed(GitFailure(GitErrorKind.COMMIT_NOT_FOUND)) from None
        except (pygit2.GitError, AccessDenied, KeyError, ValueError, OSError) as error:
            raise GitFetchFailed(
                classify(error, source.url, credentials, relay), printable(str(error))
            ) from None
        return repository
