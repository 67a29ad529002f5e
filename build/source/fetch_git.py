"""Fetch of one commit, with its submodules, over http(s) or ssh with pygit2 into a checked tree.

Called by build.source.fetch. Every connection passes an egress relay. libgit2 is imported on the first fetch.
"""

import re
import weakref
from contextlib import ExitStack

from build.errors import GIT_NOT_FOUND, BuildRefused
from build.logs import BuildLog
from build.settings import CommitSigners, FetchNetworks, GitSource, SourceLimits
from build.source.fetched import FetchedSource
from egress.addresses import AddressRules
from egress.git.commit_subject import subject_of
from egress.git.credentials import GitCredentials
from egress.git.repository_url import display_url, parse, printable
from kube.owned_directory import git_directory

_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_git(
    source: GitSource,
    credentials: GitCredentials,
    networks: FetchNetworks,
    limits: SourceLimits,
    log: BuildLog,
    signers: CommitSigners | None = None,
) -> FetchedSource:
    """Return the files of `source.commit` below `source.path`, which one of the `signers` signed if given.

    Raises BuildRefused or InfrastructureError.
    """
    from build.source.git_fetcher import GitFetcher
    from build.source.git_outside import GitOutsideFiles
    from build.source.git_tree import read_tree
    from build.source.verify_commit import verify_commit
    from egress.git.source_path import normalized_path

    check_url(source.url)
    if not _COMMIT.fullmatch(source.commit):
        message = f"{printable(source.commit, 80)!r} is not a commit id"
        raise BuildRefused(GIT_NOT_FOUND, message, "A commit id has 40 hexadecimal digits.")
    rules = AddressRules.parse(networks.allow, networks.deny)
    with ExitStack() as opened:
        directory = opened.enter_context(git_directory())
        log.line(f"fetching {display_url(source.url)} at {source.commit}")
        fetcher = GitFetcher(source.url, credentials, rules, limits.context_bytes, directory, log)
        repository = fetcher.fetch(source)
        if signers is not None:
            signer = verify_commit(repository[source.commit], signers, directory / "signers")
            log.line(f"the commit is signed by {signer}")
        subject = subject_of(repository[source.commit])
        tree = read_tree(repository, source, limits, log, fetcher)
        path = normalized_path(source.path)
        if path:
            outside = GitOutsideFiles(repository, source, path, limits, fetcher)
            # Read on access, so its objects stay as long as it does.
            weakref.finalize(outside, opened.pop_all().close)
            return FetchedSource(tree, path, outside, subject)
        return FetchedSource(tree, subject=subject)


def check_url(url: str) -> None:
    """Accept only plain https, http and ssh URLs. Raises BuildRefused(GitNotFound)."""
    try:
        parse(url)
    except ValueError as error:
        hint = "Use https:// or ssh://; put user name and password into a Secret (source.git.secretRef)."
        raise BuildRefused(GIT_NOT_FOUND, f"the git URL {display_url(url)!r}: {error}", hint) from None
