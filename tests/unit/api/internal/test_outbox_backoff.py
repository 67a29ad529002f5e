"""A claim that its object refuses is put off by itself, and given up only where it is invalid for good."""

from api.v1.runs.outbox_backoff import FIRST_PAUSE, MAX_PAUSE, MOST_REFUSALS, Pace


def test_a_run_is_put_off_for_longer_each_time_and_others_are_not() -> None:
    pace, now = Pace(), 100.0
    assert pace.due("run-a", now) and pace.next() is None
    pauses = []
    for _ in range(12):
        assert not pace.failed("run-a", now, invalid=False)
        again = pace.next()
        assert again is not None and not pace.due("run-a", again - 0.01) and pace.due("run-a", again)
        assert pace.due("run-b", now)
        pauses.append(round(again - now, 6))
        now = again
    assert (pauses[0], pauses[-1], pauses) == (FIRST_PAUSE, MAX_PAUSE, sorted(pauses))


def test_what_is_settled_is_forgotten() -> None:
    pace = Pace()
    pace.failed("run-a", 0.0, invalid=True)
    pace.settled("run-a")
    pace.settled("run-b")
    assert len(pace) == 0 and pace.due("run-a", 0.0)


def test_only_what_is_invalid_again_and_again_is_given_up() -> None:
    pace = Pace()
    answers = [pace.failed("run-a", float(n), invalid=True) for n in range(MOST_REFUSALS)]
    assert answers == [False] * (MOST_REFUSALS - 1) + [True]
    assert not any(pace.failed("run-b", float(n), invalid=bool(n % 5)) for n in range(50))


def test_what_another_delivered_is_looked_for_no_more() -> None:
    pace = Pace()
    for run in ("run-a", "run-b", "run-c"):
        pace.failed(run, 0.0, invalid=False)
    pace.keep({"run-b"})
    assert (len(pace), pace.due("run-a", 0.0), pace.due("run-b", 0.0)) == (1, True, False)
    pace.keep(set())
    assert pace.next() is None
