"""Timers of one thread: each fires once, in order, and none after its cancellation."""

import queue
import threading
import time

from egress.relay import timer
from egress.relay.timer import TimerThread


def test_timers_fire_in_order_of_time():
    fired: queue.Queue[str] = queue.Queue()
    timers, now, scheduled = TimerThread(), time.monotonic(), threading.Event()
    # Holds the thread, so none fires before all are scheduled.
    timers.schedule(now, lambda: scheduled.wait(60))
    timers.schedule(now + 0.5, lambda: fired.put("late"))
    timers.schedule(now + 0.2, lambda: fired.put("soon"))
    canceled = timers.schedule(now + 0.3, lambda: fired.put("canceled"))
    timers.schedule(now - 1, lambda: fired.put("past"))
    timers.cancel(canceled)
    scheduled.set()
    assert [fired.get(timeout=60) for _ in range(3)] == ["past", "soon", "late"]
    assert time.monotonic() >= now + 0.5
    assert fired.empty()


def test_cancel_after_firing_and_twice():
    fired, timers = threading.Event(), TimerThread()
    timer_id = timers.schedule(time.monotonic(), fired.set)
    assert fired.wait(60)
    timers.cancel(timer_id)
    timers.cancel(timer_id)


def test_canceled_timers_are_removed():
    timers = TimerThread()
    for _ in range(5000):
        timers.cancel(timers.schedule(time.monotonic() + 900, lambda: None))
    assert len(timers._heap) < 200
    assert not timers._callbacks


def test_thread_exits_when_idle_and_starts_again(monkeypatch):
    monkeypatch.setattr(timer, "IDLE_SECONDS", 0.01)
    timers = TimerThread()
    for _ in range(3):
        fired = threading.Event()
        timers.schedule(time.monotonic(), fired.set)
        assert fired.wait(60)
        for _ in range(6000):
            if not timers._running:
                break
            time.sleep(0.01)
        assert not timers._running


def test_timers_of_many_threads_all_fire():
    timers, fired = TimerThread(), threading.Semaphore(0)

    def schedule_many() -> None:
        for number in range(50):
            timers.schedule(time.monotonic() + number / 1000, fired.release)

    workers = [threading.Thread(target=schedule_many) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for _ in range(50 * 8):
        assert fired.acquire(timeout=60)
