"""Retries of failed git fetches within the time of a build's fetches."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from build.errors import InfrastructureError
from build.logs import BuildLog
from build.settings import GitSource
from build.source import git_fetcher
from build.source.git_failure import GitFetchFailed, build_error
from build.source.git_fetcher import TOTAL_TIMEOUT_SECONDS, GitFetcher
from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.errors import GitErrorKind, GitFailure

SOURCE = GitSource("https://git.example.org/crew.git", "a" * 40)


class SlowServer:
    """A server that resets each connection after `seconds`, if the attempt has that long."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.attempts = seconds, 0.0, 0

    def fetch_commit(self, *_: Any, total_timeout: float) -> None:
        self.attempts += 1
        self.now += min(self.seconds, total_timeout)
        if total_timeout < self.seconds:
            raise GitFetchFailed(GitFailure(GitErrorKind.TIMEOUT), "unexpected end of the stream")
        raise GitFetchFailed(GitFailure(GitErrorKind.UNAVAILABLE), "connection reset by peer")

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def message_of(server: SlowServer, directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    clock = SimpleNamespace(monotonic=lambda: server.now, sleep=server.sleep)
    monkeypatch.setattr(git_fetcher, "time", clock)
    monkeypatch.setattr(git_fetcher, "fetch_commit", server.fetch_commit)
    rules, log = AddressRules.parse([], []), BuildLog(out=io.StringIO())
    fetcher = GitFetcher(SOURCE.url, GitCredentials(), rules, 1 << 20, directory, log)
    with pytest.raises(InfrastructureError) as failed:
        fetcher.fetch(SOURCE)
    return str(failed.value)


def test_a_failure_without_time_for_a_retry_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = SlowServer(TOTAL_TIMEOUT_SECONDS - 5)
    assert "(connection reset by peer)" in message_of(server, tmp_path, monkeypatch)
    assert server.attempts == 1


def test_a_failure_with_time_left_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = SlowServer(1.0)
    assert "(connection reset by peer)" in message_of(server, tmp_path, monkeypatch)
    assert server.attempts == git_fetcher._MAX_ATTEMPTS


def test_a_fetch_that_takes_too_long_timed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = SlowServer(TOTAL_TIMEOUT_SECONDS + 1)
    assert message_of(server, tmp_path, monkeypatch).endswith("could not be read (timed out)")


def test_a_failure_without_a_message_is_not_a_timeout() -> None:
    failure = GitFetchFailed(GitFailure(GitErrorKind.UNAVAILABLE))
    assert str(build_error(failure, SOURCE, GitCredentials(), 1)).endswith("(without a message)")
