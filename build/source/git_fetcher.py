"""The fetches of one build from git: they share a directory, a deadline and a number of bytes.

Called by build.source.fetch_git for the source itself, by build.source.submodules and build.source.lfs.
"""

import time
from pathlib import Path

import pygit2

from build.logs import BuildLog
from build.settings import GitSource
from build.source.git_failure import GitFetchFailed, build_error
from build.source.git_remote import CONNECT_TIMEOUT_SECONDS, fetch_commit
from build.source.submodules.url import credentials_for
from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials

_MAX_ATTEMPTS = 4
TOTAL_TIMEOUT_SECONDS = 900.0
"""Of all attempts of all fetches together, in seconds."""


class GitFetcher:
    """Fetches for the repository at `source_url`; only its server gets the `credentials`."""

    def __init__(
        self,
        source_url: str,
        credentials: GitCredentials,
        rules: AddressRules,
        max_bytes: int,
        directory: Path,
        log: BuildLog,
    ) -> None:
        self.source_url, self._credentials = source_url, credentials
        self.rules, self.directory, self.log = rules, directory, log
        self.bytes_left = max_bytes
        self._deadline = time.monotonic() + TOTAL_TIMEOUT_SECONDS
        self._count = 0

    def credentials_for(self, url: str) -> GitCredentials:
        """Return what the server at `url` may get and is trusted by."""
        return credentials_for(url, self.source_url, self._credentials)

    def seconds_left(self) -> float:
        """Return the seconds until the deadline, at least one."""
        return max(1.0, self._deadline - time.monotonic())

    def has_time_for_retry(self, pause: float) -> bool:
        """Return whether an attempt after `pause` seconds could connect before the deadline.

        Another one would only time out, and hide the problem of the one before.
        """
        return self._deadline - time.monotonic() >= pause + CONNECT_TIMEOUT_SECONDS

    def fetch(self, source: GitSource) -> pygit2.Repository:
        """Return a new repository with the commit. Raises BuildRefused or InfrastructureError."""
        credentials = self.credentials_for(source.url)
        for attempt in range(_MAX_ATTEMPTS):
            self._count += 1
            pause = 0.3 * 2**attempt
            directory = self.directory / str(self._count)
            try:
                repository = fetch_commit(
                    source,
                    credentials,
                    self.rules,
                    self.bytes_left,
                    directory,
                    total_timeout=self.seconds_left(),
                )
                self.bytes_left -= sum(pack.stat().st_size for pack in directory.rglob("*.pack"))
                return repository
            except GitFetchFailed as failed:
                is_last = attempt + 1 == _MAX_ATTEMPTS or not self.has_time_for_retry(pause)
                if is_last or not failed.transient:
                    raise build_error(failed, source, credentials, self.bytes_left) from None
                self.log.line(f"fetch failed, retrying: {failed}")
            time.sleep(pause)
        raise AssertionError("the last attempt has raised")
