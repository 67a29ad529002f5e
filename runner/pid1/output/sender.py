"""Sends the events, as fast as the facade acknowledges them. A thread of its own, started by `work`."""

from __future__ import annotations

import threading
import time

from runner.pid1.api.backoff import delay
from runner.pid1.api.client import Away, Facade, Lost, chance, insist, parsed
from runner.pid1.deadline import Until
from runner.pid1.output import encode
from runner.pid1.output.event_queue import BATCH_EVENTS, Events
from runner.pid1.process import signals

_NAMED = frozenset({200, 400, 413, 422})


class Sender(threading.Thread):
    """Ends when the queue is closed and all is acknowledged, at the deadline, or when the run is lost."""

    def __init__(self, facade: Facade, events: Events, until: Until) -> None:
        super().__init__(name="sender", daemon=True)
        self._facade = facade
        self._events = events
        self._until = until
        self.lost = False
        self.away = ""

    def run(self) -> None:
        """Batch after batch; what came meanwhile makes the next one."""
        most = BATCH_EVENTS
        vain = 0
        try:
            while batch := self._events.batch(most):
                payload = [encoded for _, encoded in batch]
                answer = insist(lambda: self._facade.events(payload), _NAMED, self._until.pause)  # noqa: B023
                acknowledged = parsed(answer).get("acknowledged")
                if answer.status == 200 and isinstance(acknowledged, int):
                    self._events.acknowledge(acknowledged)
                    most = BATCH_EVENTS
                    # A facade that has lost what it acknowledged takes nothing that follows on it.
                    vain = 0 if acknowledged >= batch[0][0] else vain + 1
                    if vain and self._until.pause(delay(vain, chance())):
                        raise Away("the service has lost events that it had acknowledged")
                elif len(batch) > 1:
                    most = len(batch) // 2  # one of them is not taken: find it, so that it holds up no other
                else:
                    self._say_refused(batch[0][0], answer.status)
                    if self._until.pause(0.5):
                        raise Away(f"status {answer.status}")
        except Lost:
            self.lost = True
            signals.poke()
        except Away as error:
            self.away = str(error)
        finally:
            self._events.close()

    def _say_refused(self, number: int, status: int) -> None:
        text = encode.log(f"An event of the crew was refused by the service (status {status}).", "warning")
        self._events.replace(number, "log", encode.stamp(time.time_ns()), text)
