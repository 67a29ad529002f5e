"""Many alarms of one thread: each rings once, in its order, and none that was dropped."""

import queue
import threading
import time

from egress.relay import timer
from egress.relay.timer import Alarms


def test_alarms_ring_in_their_order_whichever_was_set_first():
    rung: queue.Queue[str] = queue.Queue()
    made, now = Alarms(), time.monotonic()
    made.set(now + 0.5, lambda: rung.put("late"))
    made.set(now + 0.2, lambda: rung.put("soon"))
    dropped = made.set(now + 0.3, lambda: rung.put("dropped"))
    made.set(now - 1, lambda: rung.put("past"))
    made.drop(dropped)
    assert [rung.get(timeout=60) for _ in range(3)] == ["past", "soon", "late"]
    assert rung.empty()


def test_an_alarm_may_be_dropped_after_it_rang_and_twice():
    rung, made = threading.Event(), Alarms()
    number = made.set(time.monotonic(), rung.set)
    assert rung.wait(60)
    made.drop(number)
    made.drop(number)


def test_dropped_alarms_leave_nothing():
    made = Alarms()
    for _ in range(5000):
        made.drop(made.set(time.monotonic() + 900, lambda: None))
    assert len(made._due) < 200
    assert not made._rings


def test_the_thread_ends_when_idle_and_begins_again(monkeypatch):
    monkeypatch.setattr(timer, "IDLE_SECONDS", 0.01)
    made = Alarms()
    for _ in range(3):
        rung = threading.Event()
        made.set(time.monotonic(), rung.set)
        assert rung.wait(60)
        for _ in range(6000):
            if not made._running:
                break
            time.sleep(0.01)
        assert not made._running


def test_alarms_of_many_threads_all_ring():
    made, rung = Alarms(), threading.Semaphore(0)

    def many() -> None:
        for number in range(50):
            made.set(time.monotonic() + number / 1000, rung.release)

    workers = [threading.Thread(target=many) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for _ in range(50 * 8):
        assert rung.acquire(timeout=60)
