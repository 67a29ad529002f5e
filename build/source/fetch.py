"""Fetch of the source from git or an upload. Called by build.planned_source."""

from build.api_client import InternalApiClient
from build.logs import BuildLog
from build.settings import BuildSettings, GitSource
from build.source.fetch_archive import fetch_archive
from build.source.fetched import FetchedSource


def fetch_source(settings: BuildSettings, log: BuildLog) -> FetchedSource:
    """Return the configured source. Raises BuildRefused or InfrastructureError."""
    if isinstance(settings.source, GitSource):
        from build.source.fetch_git import fetch_git  # archives do not need libgit2

        return fetch_git(settings.source, settings.git, settings.network, settings.limits, log)
    api = InternalApiClient(settings.internal_url, settings.token)
    return FetchedSource(fetch_archive(settings.source, api, settings.limits, log))
