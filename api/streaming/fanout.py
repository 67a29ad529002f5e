"""Fan-out of run events to all SSE subscribers.

Called by `api.v1.runs.events_routes` and `api.streaming.registry`.

A stream that has reached the end of the stored events subscribes to the feed of its run. The feed reads
new events once, encodes them once and writes them to every stream of the run without waking their tasks.
A stream with a full buffer leaves the feed and reads from the store again, from its own position: it
never blocks other streams, and no events are queued for it.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from api.store.errors import Missing, StoreRefused, StoreUnavailable
from api.store.logs.events import EventPage, Events, RunEvent
from api.streaming import connection, run_events, sse

PAGE_EVENTS = 500
"""Events per read."""
POLL_SECONDS = 15.0
"""Poll interval; covers lost notifications between replicas."""
_log = structlog.get_logger("api")


class Subscriber:
    """A stream in a feed. `position`: the last event id written to it."""

    __slots__ = ("finished", "position", "released", "stream")

    def __init__(self, stream: connection.EventStream, position: int) -> None:
        self.stream = stream
        self.position = position
        self.finished = False
        self.released: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def release(self, finished: bool = False) -> None:
        """Resume its task: to read on its own, or to end if `finished`."""
        self.finished = finished
        if not self.released.done():
            self.released.set_result(None)

    def offer(self, batch: sse.SseBatch, now: float) -> bool:
        """Write the batch if it follows and fits; return whether the stream stays in the feed."""
        if batch.previous_id < self.position:
            # The stream is ahead of the feed: it has all of the batch, or it reads the rest on its own.
            return batch.last_id <= self.position
        if batch.previous_id > self.position or self.stream.full:
            return False
        try:
            self.stream.write(batch, now)
        except ConnectionError:
            return False
        self.position = batch.last_id
        return True


class _RunFeed:
    def __init__(
        self, store: Events, run: str, position: int, now: float, remove: Callable[[str], None]
    ) -> None:
        self._store = store
        self._run = run
        self._remove = remove
        self._task: asyncio.Task[None] | None = None
        self._read_again = False
        self.position = position
        self.subscribers: set[Subscriber] = set()
        self.polled_at = now

    def poll(self) -> None:
        """Read new events now, or again after the current read."""
        self._read_again = True
        if self._task is None:
            self._task = asyncio.create_task(self._read(), name=f"feed of {self._run}")

    async def _read(self) -> None:
        try:
            while self._read_again and self.subscribers:
                self._read_again = False
                page = await self._store.read(self._run, self.position, PAGE_EVENTS)
                self._publish(page)
                self._read_again = self._read_again or bool(page.events)
        except Missing:
            # Its project was deleted: there is nothing left to read, and each stream has a terminal event.
            self._publish_end(run_events.removed(self._run, self.position + 1, datetime.now(UTC)))
        except (StoreUnavailable, StoreRefused) as error:
            _log.info("feed_ended", run=self._run, error=str(error))
            self._release_all(finished=True)
        except BaseException:
            self._release_all(finished=True)
            raise
        finally:
            self._task = None
            self.polled_at = asyncio.get_running_loop().time()
            if not self.subscribers:
                self._remove(self._run)

    def _publish_end(self, event: RunEvent) -> None:
        self._publish(EventPage((event,), True, 0, event.id))

    def _publish(self, page: EventPage) -> None:
        now = asyncio.get_running_loop().time()
        for batch in sse.batches(run_events.frames(page.events), self.position):
            leaving = [subscriber for subscriber in self.subscribers if not subscriber.offer(batch, now)]
            for subscriber in leaving:
                self.subscribers.discard(subscriber)
                subscriber.release()
            self.position = batch.last_id
        if page.ended:
            self._release_all(finished=True)

    def _release_all(self, finished: bool) -> None:
        for subscriber in self.subscribers:
            subscriber.release(finished)
        self.subscribers.clear()


class RunFeeds:
    """The feeds of all runs with subscribers."""

    def __init__(self, store: Events) -> None:
        self._store = store
        self._feeds: dict[str, _RunFeed] = {}

    async def subscribe(
        self, run: str, position: int, mark: int, stream: connection.EventStream
    ) -> tuple[int, bool]:
        """Write the events of a run after `position` as they arrive; `mark` is that of the last, empty page.

        Return the last id written and whether the stream is finished; if not, the caller must drain the
        stream and read from the store.
        """
        feed = self._feeds.get(run)
        if feed is not None and feed.position > position:
            return position, False
        subscriber = Subscriber(stream, position)
        if feed is None:
            now = asyncio.get_running_loop().time()
            feed = self._feeds[run] = _RunFeed(self._store, run, position, now, self._remove_feed)
            feed.subscribers.add(subscriber)
            self._store.listen(run, mark, feed.poll)
        else:
            feed.subscribers.add(subscriber)
        try:
            await subscriber.released
        finally:
            feed.subscribers.discard(subscriber)
            if not feed.subscribers:
                self._remove_feed(run)
        return subscriber.position, subscriber.finished

    def poll(self, now: float) -> None:
        """Poll the runs without a recent read."""
        for feed in list(self._feeds.values()):
            if now - feed.polled_at >= POLL_SECONDS:
                feed.polled_at = now
                feed.poll()

    def _remove_feed(self, run: str) -> None:
        feed = self._feeds.get(run)
        if feed is not None and not feed.subscribers:
            del self._feeds[run]
            self._store.unlisten(run)
