"""Sends events to the API as fast as it acknowledges them. A separate thread, started by `work`."""

from __future__ import annotations

import threading
import time

from runner.pid1.api.backoff import delay
from runner.pid1.api.client import (
    APIUnavailable,
    RunAPIClient,
    RunLost,
    jitter,
    json_object,
    retry_until_status,
)
from runner.pid1.deadline import Deadline
from runner.pid1.output import encode
from runner.pid1.output.event_queue import MAX_BATCH_EVENTS, EventQueue
from runner.pid1.process import signals

_HANDLED_STATUSES = frozenset({200, 400, 413, 422})


class EventSender(threading.Thread):
    """Finishes when the queue is closed and all events are acknowledged, at the deadline, or on RunLost."""

    def __init__(self, client: RunAPIClient, events: EventQueue, deadline: Deadline) -> None:
        super().__init__(name="sender", daemon=True)
        self._client = client
        self._events = events
        self._deadline = deadline
        self.lost = False
        self.failure = ""

    def run(self) -> None:
        """Send batch after batch; events that arrive meanwhile form the next one."""
        max_events = MAX_BATCH_EVENTS
        stalled = 0
        try:
            while batch := self._events.batch(max_events):
                payload = [encoded for _, encoded in batch]
                response = retry_until_status(
                    lambda: self._client.events(payload),  # noqa: B023
                    _HANDLED_STATUSES,
                    self._deadline.pause,
                )
                acknowledged = json_object(response).get("acknowledged")
                if response.status == 200 and isinstance(acknowledged, int):
                    self._events.acknowledge(acknowledged)
                    max_events = MAX_BATCH_EVENTS
                    # An API that lost acknowledged events accepts no events after them.
                    stalled = 0 if acknowledged >= batch[0][0] else stalled + 1
                    if stalled and self._deadline.pause(delay(stalled, jitter())):
                        raise APIUnavailable("the service lost events that it had acknowledged")
                elif len(batch) > 1:
                    max_events = len(batch) // 2  # bisect to find the rejected event, so it blocks no others
                else:
                    self._replace_rejected(batch[0][0], response.status)
                    if self._deadline.pause(0.5):
                        raise APIUnavailable(f"status {response.status}")
        except RunLost:
            self.lost = True
            signals.wake_main_thread()
        except APIUnavailable as error:
            self.failure = str(error)
        finally:
            self._events.close()

    def _replace_rejected(self, number: int, status: int) -> None:
        text = encode.log(f"The service rejected an event of the crew (status {status}).", "warning")
        self._events.replace(number, "log", encode.timestamp(time.time_ns()), text)
