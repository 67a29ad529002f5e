"""Fetch of the source from git or an upload. Called by build.planned_source."""

from build.api_client import InternalApiClient
from build.errors import VERIFICATION_FAILED, BuildRefused
from build.logs import BuildLog
from build.settings import BuildSettings, GitSource
from build.source.fetch_archive import fetch_archive
from build.source.fetched import FetchedSource


def fetch_source(settings: BuildSettings, log: BuildLog) -> FetchedSource:
    """Return the configured source. Raises BuildRefused or InfrastructureError."""
    if settings.signers is not None and not isinstance(settings.source, GitSource):
        raise BuildRefused(
            VERIFICATION_FAILED,
            "the project takes signed commits only (source.git.verify), and an upload has no signature",
            "Push a signed commit, or deploy one by its id.",
        )
    if isinstance(settings.source, GitSource):
        from build.source.fetch_git import fetch_git  # archives do not need libgit2

        return fetch_git(
            settings.source, settings.git, settings.network, settings.limits, log, settings.signers
        )
    api = InternalApiClient(settings.internal_url, settings.token, authorities=settings.internal_ca)
    return FetchedSource(fetch_archive(settings.source, api, settings.limits, log, settings.crew))
