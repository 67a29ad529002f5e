"""pygit2 asked for exactly one commit. Called by build.source.fetch_git, which tells what goes wrong.

libgit2 is imported with this module, on the first fetch.
"""

from pathlib import Path
from typing import Any

import pygit2

from build.settings import GitSource
from build.source.git_failure import Failed
from egress.addresses import Rules
from egress.git.credentials import Access
from egress.git.errors import Kind, Trouble, trouble
from egress.git.fetch_commit import CommitMissing, fetch_one
from egress.git.remote import AccessDenied, Oversized, callbacks, confine, way
from egress.git.repository_url import harmless

CONNECT_SECONDS = 10
SILENCE_SECONDS = 60
# What a remote may say beside the objects: the list of its branches and tags.
_TALK_BYTES = 24 << 20


def fetch_commit(
    source: GitSource, access: Access, rules: Rules, most: int, place: Path, **limits: Any
) -> pygit2.Repository:
    """A repository below the empty `place` that holds the commit, of at most `most` bytes. Raises Failed.

    `limits` are those of the way out where they differ from ours.
    """
    usual = {
        "connect_timeout": CONNECT_SECONDS,
        "idle_timeout": SILENCE_SECONDS,
        "most": most + _TALK_BYTES,
    }
    with way(source.url, rules, access, **{**usual, **limits}) as through:
        confine(place / "home", CONNECT_SECONDS, SILENCE_SECONDS, through, access)
        near = pygit2.init_repository(str(place / "repository"), bare=True)
        far = near.remotes.create_anonymous(through.address(source.url))
        try:
            fetch_one(near, far, source.commit, lambda: callbacks(source.url, access, through, most))
        except Oversized:
            raise Failed(Trouble(Kind.TOO_LARGE)) from None
        except CommitMissing:
            raise Failed(Trouble(Kind.COMMIT)) from None
        except (pygit2.GitError, AccessDenied, KeyError, ValueError, OSError) as error:
            raise Failed(trouble(error, source.url, access, through), harmless(str(error))) from None
        return near
