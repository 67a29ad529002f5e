"""The source, wherever it comes from. Called by build.assemble and build.workspace."""

from build.api_client import Facade
from build.logs import Log
from build.settings import GitSource, Settings
from build.source.fetch_archive import fetch_archive
from build.source.tree import SourceTree


def fetch_source(settings: Settings, log: Log) -> SourceTree:
    """The checked tree that the settings name. Raises Refused or Infrastructure."""
    if isinstance(settings.source, GitSource):
        from build.source.fetch_git import fetch_git  # libgit2 is of no use to archives

        return fetch_git(settings.source, settings.git, settings.network, settings.limits, log)
    facade = Facade(settings.internal_url, settings.token)
    return fetch_archive(settings.source, facade, settings.limits, log)
