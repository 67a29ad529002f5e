"""A claim that its object refuses is put off by itself, and given up only where it is invalid for good."""

from api.v1.runs.outbox_backoff import FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, MAX_INVALID_WRITES, OutboxBackoff


def test_a_run_is_put_off_for_longer_each_time_and_others_are_not() -> None:
    pace, now = OutboxBackoff(), 100.0
    assert pace.is_due("run-a", now) and pace.next_retry() is None
    pauses = []
    for _ in range(12):
        assert not pace.record_failure("run-a", now, invalid=False)
        again = pace.next_retry()
        assert again is not None and not pace.is_due("run-a", again - 0.01) and pace.is_due("run-a", again)
        assert pace.is_due("run-b", now)
        pauses.append(round(again - now, 6))
        now = again
    assert (pauses[0], pauses[-1], pauses) == (FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, sorted(pauses))


def test_what_is_settled_is_forgotten() -> None:
    pace = OutboxBackoff()
    pace.record_failure("run-a", 0.0, invalid=True)
    pace.remove("run-a")
    pace.remove("run-b")
    assert len(pace) == 0 and pace.is_due("run-a", 0.0)


def test_only_what_is_invalid_again_and_again_is_given_up() -> None:
    pace = OutboxBackoff()
    answers = [pace.record_failure("run-a", float(n), invalid=True) for n in range(MAX_INVALID_WRITES)]
    assert answers == [False] * (MAX_INVALID_WRITES - 1) + [True]
    assert not any(pace.record_failure("run-b", float(n), invalid=bool(n % 5)) for n in range(50))


def test_what_another_delivered_is_looked_for_no_more() -> None:
    pace = OutboxBackoff()
    for run in ("run-a", "run-b", "run-c"):
        pace.record_failure(run, 0.0, invalid=False)
    pace.retain({"run-b"})
    assert (len(pace), pace.is_due("run-a", 0.0), pace.is_due("run-b", 0.0)) == (1, True, False)
    pace.retain(set())
    assert pace.next_retry() is None
