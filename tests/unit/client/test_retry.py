"""How long a stream is waited for."""

from crewyard.retry import RECONNECTS, SOON, Patience


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def opened_for(clock, patience, seconds):
    patience.opened()
    clock.now += seconds
    return patience.broken(None)


def test_a_proxy_that_cuts_every_connection_ends_no_silent_run():
    clock = Clock()
    patience = Patience(clock)
    for _ in range(10 * RECONNECTS):
        assert opened_for(clock, patience, SOON + 20) <= 0.5
        assert not patience.exhausted


def test_a_stream_that_closes_at_once_is_given_up():
    clock = Clock()
    patience = Patience(clock)
    for _ in range(RECONNECTS):
        assert not patience.exhausted
        opened_for(clock, patience, 0.1)
    assert patience.exhausted
    patience.heard()
    assert not patience.exhausted


def test_one_that_is_silent_is_given_up_too():
    clock = Clock()
    patience = Patience(clock)
    for _ in range(RECONNECTS):
        patience.opened()
        clock.now += 45
        patience.broken(None, silent=True)
    assert patience.exhausted


def test_a_service_that_cannot_be_reached_was_not_opened():
    clock = Clock()
    patience = Patience(clock)
    opened_for(clock, patience, SOON)
    for _ in range(RECONNECTS):
        clock.now += 2 * SOON
        patience.broken(None)
    assert patience.exhausted
