"""Back-off by run; a claim is given up only after repeated Invalid errors."""

from api.internal.outbox_backoff import (
    FIRST_BACKOFF_SECONDS,
    MAX_BACKOFF_SECONDS,
    MAX_INVALID_WRITES,
    MIN_PAUSE_SECONDS,
    OutboxBackoff,
)


def test_backoff_grows_per_run() -> None:
    backoff, now = OutboxBackoff(), 100.0
    assert backoff.is_due("run-a", now) and backoff.next_retry() is None
    delays = []
    for _ in range(12):
        assert not backoff.record_failure("run-a", now, invalid=False)
        next_retry = backoff.next_retry()
        assert (
            next_retry is not None
            and not backoff.is_due("run-a", next_retry - 0.01)
            and backoff.is_due("run-a", next_retry)
        )
        assert backoff.is_due("run-b", now)
        delays.append(round(next_retry - now, 6))
        now = next_retry
    assert (delays[0], delays[-1], delays) == (FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, sorted(delays))


def test_the_pause_ends_with_the_earliest_retry() -> None:
    backoff = OutboxBackoff()
    assert backoff.pause_seconds(0.0, 3.0) == 3.0
    backoff.record_failure("run-a", 0.0, invalid=False)
    assert backoff.pause_seconds(0.0, 3.0) == FIRST_BACKOFF_SECONDS
    assert backoff.pause_seconds(10.0, 3.0) == MIN_PAUSE_SECONDS
    assert backoff.pause_seconds(-10.0, 3.0) == 3.0


def test_removed_run_is_due() -> None:
    backoff = OutboxBackoff()
    backoff.record_failure("run-a", 0.0, invalid=True)
    backoff.remove("run-a")
    backoff.remove("run-b")
    assert len(backoff) == 0 and backoff.is_due("run-a", 0.0)


def test_only_consecutive_invalid_writes_give_up() -> None:
    backoff = OutboxBackoff()
    gives_up = [backoff.record_failure("run-a", float(n), invalid=True) for n in range(MAX_INVALID_WRITES)]
    assert gives_up == [False] * (MAX_INVALID_WRITES - 1) + [True]
    assert not any(backoff.record_failure("run-b", float(n), invalid=bool(n % 5)) for n in range(50))


def test_retain_drops_other_runs() -> None:
    backoff = OutboxBackoff()
    for run in ("run-a", "run-b", "run-c"):
        backoff.record_failure(run, 0.0, invalid=False)
    backoff.retain({"run-b"})
    assert (len(backoff), backoff.is_due("run-a", 0.0), backoff.is_due("run-b", 0.0)) == (1, True, False)
    backoff.retain(set())
    assert backoff.next_retry() is None
