"""Reconnect limits of a stream, and how long a request waits."""

from crewyard import exchange
from crewyard.retry import MAX_RECONNECTS, STABLE_SECONDS, ReconnectPolicy


class FakeClock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def opened_for(clock, policy, seconds):
    policy.record_open()
    clock.now += seconds
    return policy.record_end(None)


def test_a_proxy_that_cuts_every_connection_does_not_end_a_silent_run():
    clock = FakeClock()
    policy = ReconnectPolicy(clock)
    for _ in range(10 * MAX_RECONNECTS):
        assert opened_for(clock, policy, STABLE_SECONDS + 20) <= 0.5
        assert not policy.exhausted


def test_a_stream_that_closes_immediately_is_given_up():
    clock = FakeClock()
    policy = ReconnectPolicy(clock)
    for _ in range(MAX_RECONNECTS):
        assert not policy.exhausted
        opened_for(clock, policy, 0.1)
    assert policy.exhausted
    policy.record_message()
    assert not policy.exhausted


def test_a_silent_stream_is_given_up():
    clock = FakeClock()
    policy = ReconnectPolicy(clock)
    for _ in range(MAX_RECONNECTS):
        policy.record_open()
        clock.now += 45
        policy.record_end(None, silent=True)
    assert policy.exhausted


def test_an_unreachable_service_does_not_count_as_open():
    clock = FakeClock()
    policy = ReconnectPolicy(clock)
    opened_for(clock, policy, STABLE_SECONDS)
    for _ in range(MAX_RECONNECTS):
        clock.now += 2 * STABLE_SECONDS
        policy.record_end(None)
    assert policy.exhausted


def test_no_request_waits_until_a_proxy_cuts_it():
    assert exchange.next_wait(exchange.deadline(None)) < 30
    assert exchange.next_wait(exchange.deadline(5.5)) == 5
    assert exchange.next_wait(exchange.deadline(0)) == 1
