"""Shared counting of replicas in a real Redis, and local counting while it is unavailable."""

import asyncio
import signal
import time
from collections.abc import Iterator

import pytest

from api.ratelimit import counters
from api.ratelimit.counters import MAX_RETRY_SECONDS, check_url
from api.ratelimit.limiter import RateLimiter, client_network
from tests.unit.api.ratelimit import redis_server


@pytest.fixture(scope="module")
def running() -> Iterator[redis_server.RedisServer]:
    yield from redis_server.serving()


@pytest.fixture
def redis(running, monkeypatch) -> Iterator[redis_server.RedisServer]:
    """The server without data."""
    # A slow Redis on a busy test machine is not unavailable.
    monkeypatch.setattr(counters, "REDIS_TIMEOUT_SECONDS", 60.0)
    running.stop()
    running.start()
    yield running
    if running.process is None:
        running.start()


@pytest.fixture
async def limiters(redis):
    """The limiters of two replicas."""
    made = RateLimiter(redis.url), RateLimiter(redis.url.replace("redis://", "valkey://"))
    yield made
    for limiter in made:
        await limiter.close()


async def test_replicas_share_a_window(limiters):
    started = time.monotonic()
    seen = [await limiters[number % 2].count("key:a", 5) for number in range(7)]
    elapsed = time.monotonic() - started
    assert [allowance.remaining for allowance in seen] == [4, 3, 2, 1, 0, 0, 0]
    assert [allowance.exceeded for allowance in seen] == [False] * 5 + [True] * 2
    # Redis gives the rest of the window, to which each replica adds its time.
    assert max(one.reset for one in seen) - min(one.reset for one in seen) <= 1 + elapsed
    assert (await limiters[0].count("key:b", 5)).remaining == 4
    assert (await limiters[1].peek("key:a", 5)).exceeded
    assert not (await limiters[1].peek("key:b", 5)).exceeded


async def test_concurrent_requests_do_not_exceed_the_limit(limiters):
    seen = await asyncio.gather(*(limiters[number % 2].count("key:a", 50) for number in range(300)))
    assert sum(not allowance.exceeded for allowance in seen) == 50


async def test_replicas_count_locally_while_redis_is_unavailable(limiters, redis, monkeypatch, capsys):
    now = [1000.0]
    for limiter in limiters:
        limiter._counter._clock = lambda: now[0]
    assert (await limiters[0].count("key:a", 2)).remaining == 1
    redis.stop()
    for limiter in limiters:
        seen = [await limiter.count("key:a", 2) for _ in range(3)]
        assert [allowance.exceeded for allowance in seen] == [False, False, True]
    redis.start()
    assert (await limiters[0].count("key:a", 2)).exceeded, "it is not asked again at once"
    now[0] += MAX_RETRY_SECONDS
    assert (await limiters[0].count("key:a", 2)).remaining == 1, "it is back, empty"
    output = capsys.readouterr().out
    assert output.count("shared_rate_limit_away") == 2, "each replica says it once a minute"
    assert redis_server.PASSWORD not in output


async def test_hanging_redis_is_timed_out(limiters, redis, monkeypatch):
    assert (await limiters[0].count("key:a", 9)).remaining == 8
    monkeypatch.setattr(counters, "REDIS_TIMEOUT_SECONDS", 0.05)
    redis.signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(30):
            assert (await limiters[0].count("key:a", 9)).remaining == 8
            assert (await limiters[0].count("key:a", 9)).remaining == 7
    finally:
        redis.signal(signal.SIGCONT)


@pytest.mark.parametrize(
    "url",
    ["redis://localhost", "redis://:secret@10.0.0.1:6379/3", "rediss://user:secret@redis.example:6380",
     "valkey://valkey.crewyard-system.svc", "valkeys://[::1]:6379/0"],
)  # fmt: skip
def test_redis_and_valkey_urls_are_accepted(url):
    check_url(url)


@pytest.mark.parametrize(
    "url",
    ["redis", "redis://", "http://swordfish@x", "redis://:swordfish@x:port", "redis://x:swordfish@y/zero",
     "redis://swordfish@x/0?db=1", "redis+unix:///swordfish", "redis://:swordfish@x:0"],
)  # fmt: skip
def test_other_urls_are_rejected_without_showing_the_password(url):
    with pytest.raises(ValueError, match="redis://") as caught:
        check_url(url)
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize(
    ("remote", "stands_for"),
    [("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64"), ("2001:db8::ffff:2", "2001:db8::/64"),
     ("2001:db8:0:1::1", "2001:db8:0:1::/64"), ("::ffff:10.0.0.1", "10.0.0.1"), ("fe80::1%eth0", "fe80::/64"),
     (None, ""), ("", ""), ("odd", "odd")],
)  # fmt: skip
def test_client_network(remote, stands_for):
    assert client_network(remote) == stands_for
