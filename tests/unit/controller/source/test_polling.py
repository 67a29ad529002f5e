"""Who is looked at when: shared listings, places, back-off, and remotes that never answer."""

import asyncio
import contextlib
import socket
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config import Timing
from controller.git.client import Git
from controller.git.repository import GitProblem, Remote
from controller.namespace import SOURCE_WORKERS
from controller.observability.metrics import ControllerMetrics
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.worker import Worker
from controller.source.host_backoff import SLOW_SECONDS, HostBackoff
from controller.source.host_limits import MAX_PER_HOST, MAX_SLOW, MAX_SLOW_PER_HOST, HostSlots
from controller.source.observed import ObservedSources
from controller.source.poller import SourceReconciler
from controller.source.schedule import PollSchedule
from controller.source.singleflight import SingleFlight
from crds import kinds
from tests.testbed.git_server import GitServer


class Search:
    """Something to look for, that takes until it is let go."""

    def __init__(self):
        self.count, self.now, self.ready = 0, 0.0, asyncio.Event()

    async def make(self):
        self.count += 1
        mine = self.count
        await self.ready.wait()
        self.now += 1.0
        return mine


async def test_concurrent_callers_share_one_result():
    search = Search()
    shared = SingleFlight(lambda: search.now, 10)
    asking = [asyncio.create_task(shared.get("a", 0.0, search.make)) for _ in range(5)]
    await asyncio.sleep(0)
    search.ready.set()
    assert await asyncio.gather(*asking) == [(1, 0.0)] * 5
    assert await shared.get("a", 0.0, search.make) == (1, 0.0)
    assert await shared.get("a", 0.5, search.make) == (2, 1.0)


async def test_callers_that_need_fresh_data_share_the_next_call():
    search = Search()
    shared = SingleFlight(lambda: search.now, 10)
    early = asyncio.create_task(shared.get("a", 0.0, search.make))
    await asyncio.sleep(0)
    late = [asyncio.create_task(shared.get("a", 0.5, search.make)) for _ in range(5)]
    await asyncio.sleep(0)
    search.ready.set()
    assert await early == (1, 0.0)
    assert await asyncio.gather(*late) == [(2, 1.0)] * 5


async def test_cancelled_caller_does_not_affect_others():
    search = Search()
    shared = SingleFlight(lambda: search.now, 10)
    first, second = (asyncio.create_task(shared.get("a", 0.0, search.make)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    search.ready.set()
    assert await second == (2, 0.0)


async def test_failure_reaches_waiting_callers_and_is_not_cached():
    outcomes = [GitProblem("Unreachable", "away", transient=True), 7]

    async def make():
        await asyncio.sleep(0)
        found = outcomes.pop(0)
        if isinstance(found, GitProblem):
            raise found
        return found

    clock = iter(range(100))
    shared = SingleFlight(lambda: float(next(clock)), 10)
    waiting = [asyncio.create_task(shared.get("a", 0.0, make)) for _ in range(3)]
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [GitProblem] * 3
    assert (await shared.get("a", 0.0, make))[0] == 7


def key(number):
    return event_map.source(f"p-{number}")


def test_host_has_few_slots_and_a_failing_remote_fewer():
    places = HostSlots()
    assert [places.acquire(key(n), "a", False) for n in range(MAX_PER_HOST + 2)] == [True] * MAX_PER_HOST + [
        False
    ] * 2
    assert places.acquire(key(9), "b", True) and not places.acquire(key(10), "b", True)
    assert places.acquire(key(11), "b", False)
    assert places.waiting == 3
    assert places.release("a", False) == [key(MAX_PER_HOST), key(MAX_PER_HOST + 1)]
    assert places.release("b", True) == [key(10)]
    assert places.waiting == 0


def test_slow_hosts_leave_a_free_worker():
    places = HostSlots()
    slots = [n for n in range(2 * SOURCE_WORKERS) if places.acquire(key(n), f"host-{n // 2}", False)]
    assert len(slots) < SOURCE_WORKERS
    assert places.release("host-0", False) == [key(len(slots)), key(len(slots) + 1)]
    assert places.acquire(key(len(slots)), f"host-{len(slots) // 2}", False)


def test_free_slot_for_slow_remotes_goes_to_another_host():
    places = HostSlots()
    for number in range(MAX_SLOW):
        assert places.acquire(key(number), f"host-{number}", True)
    assert not places.acquire(key(MAX_SLOW), "another", True)
    assert places.release("host-0", True) == [key(MAX_SLOW)]
    assert places.waiting == 0


class Polls:
    """Keys that use the places as the poller does: a key that gets no place tries again when it is woken."""

    def __init__(self, most):
        self.places, self.most = HostSlots(most), most
        self.held, self.waiting, self.polled = {}, {}, set()

    def ask(self, key, host, slow):
        if self.places.acquire(key, host, slow):
            self.held[key] = (host, slow)
            self.polled.add(key)
        else:
            self.waiting[key] = (host, slow)

    def end(self, key):
        for woken in self.places.release(*self.held.pop(key)):
            self.ask(woken, *self.waiting.pop(woken))

    def fits(self, host, slow):
        """Return whether one more place of this kind is within every limit."""
        mine = [other_slow for other, other_slow in self.held.values() if other == host]
        slow_places = sum(other_slow for _, other_slow in self.held.values())
        return (
            len(self.held) < self.most
            and len(mine) < MAX_PER_HOST
            and not (slow and (sum(mine) >= MAX_SLOW_PER_HOST or slow_places >= MAX_SLOW))
        )

    def check(self):
        assert len(self.held) <= self.most
        slow_hosts = [host for host, slow in self.held.values() if slow]
        assert len(slow_hosts) <= MAX_SLOW
        for host, count in Counter(host for host, _ in self.held.values()).items():
            assert count <= MAX_PER_HOST and slow_hosts.count(host) <= MAX_SLOW_PER_HOST
        assert self.places.waiting == len(self.waiting)
        assert not [key for key, (host, slow) in self.waiting.items() if self.fits(host, slow)]


moves = st.lists(
    st.tuples(st.sampled_from("abcdefghijkl"), st.booleans(), st.integers(0, 3)), min_size=1, max_size=80
)


@given(moves, st.sampled_from([5, 120]))
def test_slots_are_bounded_and_freed_ones_go_to_waiters(drawn, most):
    polls = Polls(most)
    for number, (host, slow, ended) in enumerate(drawn):
        if ended == 0 and polls.held:
            polls.end(sorted(polls.held)[number % len(polls.held)])
        else:
            polls.ask(key(number), host, slow)
        polls.check()
    asked = polls.polled | set(polls.waiting)
    while polls.held:
        polls.end(next(iter(polls.held)))
        polls.check()
    assert polls.polled == asked and not polls.waiting


HOUR = 3600.0


def double(failures):
    return 2.0 ** (failures - 1) / 20


def test_host_backs_off_after_failures_of_two_projects():
    patience = HostBackoff(600.0, double)
    patience.record_failure("a/1", "a", "p", 0.0)
    assert patience.retry_at("a/1", "a", "p", HOUR) == 1.0 and patience.retry_at("a/2", "a", "q", HOUR) == 0.0
    patience.record_failure("a/1", "a", "p", 10.0)
    assert patience.retry_at("a/1", "a", "p", HOUR) == 12.0
    patience.record_failure("a/2", "a", "q", 20.0)
    assert patience.retry_at("a/3", "a", "r", HOUR) == 21.0 and patience.is_slow("a/3", "a", "r")
    for _ in range(20):
        patience.record_failure("a/1", "a", "p", 100.0)
    assert patience.retry_at("a/3", "a", "r", HOUR) == 700.0
    patience.record_success("a/3", "a", "r", 0.1)
    assert patience.retry_at("a/3", "a", "r", HOUR) == 0.0 and not patience.is_slow("a/3", "a", "r")
    assert patience.retry_at("a/1", "a", "p", HOUR) == 700.0
    patience.record_success("a/1", "a", "p", SLOW_SECONDS + 1)
    assert patience.retry_at("a/1", "a", "p", HOUR) == 0.0 and patience.is_slow("a/1", "a", "p")


def test_one_project_does_not_back_off_a_host():
    patience = HostBackoff(600.0, double)
    for number in range(100):
        # Repositories of one project, each of which fails.
        patience.record_failure(f"a/{number}", "a", "evil", float(number))
        # Commits that no server could give, at the address of another project, too.
        patience.record_unread_commit("a/1", "evil", float(number))
        patience.record_unread_commit("a/good", "evil2", float(number))
    assert patience.retry_at("a/good", "a", "p", 5.0) == 0.0 and not patience.is_slow("a/good", "a", "p")
    assert patience.retry_at("a/good", "a", "evil2", 5.0) > 99.0


def test_host_backoff_is_at_most_two_poll_intervals():
    patience = HostBackoff(600.0, double)
    for number in range(100):
        patience.record_failure("a/1", "a", "evil", float(number))
        patience.record_failure("a/2", "a", "evil2", float(number))
    assert patience.retry_at("a/good", "a", "p", 5.0) == 99.0 + 10.0
    assert patience.retry_at("a/good", "a", "p", 60.0) == 99.0 + 120.0
    assert patience.retry_at("a/1", "a", "evil", 5.0) == 699.0
    # One project's listing is the probe for all.
    patience.record_listing("a/good", "a")
    assert patience.retry_at("a/3", "a", "q", 60.0) == 0.0


def test_polls_of_one_remote_are_aligned():
    schedule = PollSchedule(draw=lambda low, high: 1.0)
    schedule.polled("p", 0.0, 60.0, None)
    schedule.polled("q", 36.0, 60.0, None)
    # q's listing is young enough for p at its time, and then both are due at once.
    assert schedule.listed_since("p", 60.0, 60.0) <= 36.0
    schedule.polled("p", 36.0, 60.0, None)
    assert schedule.due == {"p": 96.0, "q": 96.0}
    assert schedule.listed_since("p", 96.0, 60.0) > 36.0


def test_poll_requested_during_a_poll_follows_it():
    schedule = PollSchedule()
    schedule.request("p", 1.0)
    schedule.request("p", 2.0)
    schedule.polled("p", 1.5, 60.0, 1.0)
    assert schedule.listed_since("p", 9.0, 60.0) == 2.0
    schedule.polled("p", 2.5, 60.0, 2.0)
    assert not schedule.requested
    assert (
        not schedule.note_push("p", "") and schedule.note_push("p", "t") and not schedule.note_push("p", "t")
    )


@contextlib.contextmanager
def silent(address):
    """A server that takes connections and never says a word; its address."""
    with socket.create_server((address, 0), backlog=200) as server:
        yield f"http://{address}:{server.getsockname()[1]}"


@pytest.fixture
async def sources(config, make):
    """The looks of a controller on Projects that are known, without an apiserver: no Secret is named."""
    timing = Timing(git_timeout=120.0)
    settings = replace(config, net_allow=("127.0.0.0/8",), timing=timing)
    cache, queues, metrics = ObjectCache(), Queues(asyncio.get_running_loop().time), ControllerMetrics()
    applier = Applier(None, cache, EventHandlers(cache, queues), queues, None, metrics)
    git = Git(settings)
    reconciler = SourceReconciler(applier, settings, git, ObservedSources())
    handle = Worker({event_map.SOURCE: reconciler.reconcile}, metrics).handle
    workers = [asyncio.create_task(queues.sources.run_worker(handle)) for _ in range(32)]

    def follow(name, url, **git):
        cache.put(kinds.PROJECT, make.project(name, source={"git": {"url": url, **git}}).raw)
        queues.add(event_map.source(name))

    async def seen(name):
        async with asyncio.timeout(100):
            while (look := reconciler.observed_sources.get(name)) is None:
                await asyncio.sleep(0.01)
        return look

    reconciler.__dict__.update(follow=follow, seen=seen)
    yield reconciler
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    await git.close()


async def test_unresponsive_remotes_do_not_delay_others(sources, tmp_path):
    with GitServer(tmp_path) as server, contextlib.ExitStack() as open_servers:
        commit = server.create("crew").commit({"main.py": "1"}, "A commit")
        dead = [open_servers.enter_context(silent(f"127.0.0.{number}")) for number in range(2, 6)]
        for number in range(200):
            sources.follow(f"dead-{number}", f"{dead[number % len(dead)]}/{number}.git")
        await asyncio.sleep(0.2)
        sources.follow("alive", server.url("crew"))
        assert (await sources.seen("alive")).commit == commit
        assert not any(sources.observed_sources.get(f"dead-{number}") for number in range(200))


async def test_projects_of_one_remote_share_a_listing(sources, tmp_path):
    with GitServer(tmp_path) as server:
        commit = server.create("crew").commit({"a/main.py": "1", "b/main.py": "1"}, "A commit")
        for number in range(50):
            sources.follow(f"p-{number}", server.url("crew"), path="a" if number % 2 else "b")
        found = [await sources.seen(f"p-{number}") for number in range(50)]
        assert {look.commit for look in found} == {commit}
        # A listing or two, and a fetch for each path.
        assert sum("info/refs" in line for line in server.requests) <= 4 + 2 * 2


async def test_unusable_commit_is_not_fetched_at_every_poll(sources, tmp_path):
    with GitServer(tmp_path) as server:
        repository = server.create("crew")
        repository.commit({"main.py": "1"}, "A commit")
        sources.follow("p", server.url("crew"), path="none")
        assert (await sources.seen("p")).problem.reason == "PathNotFound"

        def fetches():
            return sum("git-upload-pack" in line and "info/refs" not in line for line in server.requests)

        async def again():
            sources.schedule.due.clear()
            await sources.reconcile("p")
            return sources.observed_sources.get("p")

        first = fetches()
        assert [(await again()).problem.reason for _ in range(3)] == ["PathNotFound"] * 3
        assert fetches() == first > 0
        # A requested poll and another commit cause a fetch.
        sources.schedule.request("p", 0.0)
        assert (await again()).problem and fetches() > first
        repository.commit({"none/main.py": "1"}, "Another commit")
        assert (await again()).problem is None


async def test_shorter_interval_counts_at_once(sources, tmp_path):
    with GitServer(tmp_path) as server:
        server.create("crew").commit({"main.py": "1"}, "A commit")
        sources.follow("p", server.url("crew"), interval="1h")
        await sources.seen("p")
        first = sources.schedule.due["p"]
        sources.schedule.listed_at["p"] -= 10.0
        await sources.reconcile("p")
        assert sources.schedule.due["p"] == first
        sources.follow("p", server.url("crew"), interval="5s")
        await sources.reconcile("p")
        assert sources.schedule.due["p"] < first - 3000.0


class There:
    """An apiserver that has one object, or none."""

    def __init__(self, raw):
        self.raw = raw

    async def get(self, kind, name):
        return self.raw


async def test_evicted_project_keeps_its_observed_source(sources, make, tmp_path):
    with GitServer(tmp_path) as server:
        commit = server.create("crew").commit({"main.py": "1"}, "A commit")
        sources.follow("p", server.url("crew"))
        assert (await sources.seen("p")).commit == commit
        for raw, kept in ((sources.applier.cache.get(kinds.PROJECT, "p"), True), (None, False)):
            sources.applier.cache.remove(kinds.PROJECT, "p")
            sources.__dict__["applier"] = replace(sources.applier, kube=There(raw))
            await sources.reconcile("p")
            assert (sources.observed_sources.get("p") is not None) is kept


async def test_unreadable_commit_does_not_delay_the_host(sources, tmp_path):
    """A tag of a blob is listed, and its commit cannot be read: that passes, as far as the service knows."""
    with GitServer(tmp_path) as server:
        for name in ("evil1", "evil2"):
            repository = server.create(name)
            repository.commit({"key": "1"}, "A key")
            blob = repository._git("rev-parse", "HEAD:key").strip()
            repository._git("update-ref", "refs/tags/blob", blob)
        good = server.create("good")
        good.commit({"main.py": "1"}, "A commit")
        for name in ("evil1", "evil2"):
            sources.follow(name, server.url(name), ref={"tag": "blob"})
            assert (await sources.seen(name)).problem.transient
        host = Remote(server.url("good")).host
        assert sources.backoff.retry_at(server.url("good"), host, "good", 5.0) == 0.0
        sources.follow("good", server.url("good"))
        assert (await sources.seen("good")).problem is None


async def test_a_poll_without_a_connection_ends_no_back_off(sources, tmp_path):
    """A Project that names a commit needs one only to read it."""
    with GitServer(tmp_path) as server:
        commit = server.create("crew").commit({"main.py": "1"}, "A commit")
        url = server.url("crew")
        host = Remote(url).host

        def fail():
            for other in ("a", "b"):
                sources.backoff.record_failure(url, host, other, time.monotonic())

        def backed_off():
            return {each: sources.backoff.retry_at(each, host, "a", 60.0) > 0.0 for each in (url, "other")}

        fail()
        sources.follow("p", url, ref={"commit": commit})
        assert (await sources.seen("p")).problem is None
        assert backed_off() == {url: False, "other": False}
        fail()
        first = len(server.requests)
        sources.schedule.request("p", time.monotonic())
        await sources.reconcile("p")
        assert len(server.requests) == first > 0
        assert backed_off() == {url: True, "other": True}
