"""What runs say, handed to all who follow them at once. Called by `api.v1.runs.events_routes` and `api.streaming.registry`.

A stream that has come to the end of what there is joins its run's feed: what comes next is read once, encoded
once, and written to every stream of the run without waking any of their tasks. One that cannot take it leaves
the feed and reads on by itself, from where it was; so it holds up nobody, and nothing is queued for it.
"""

import asyncio
from collections.abc import Callable

import structlog

from api.store.errors import Refused, StoreUnavailable
from api.store.logs.events import EventPage, Events
from api.streaming import connection
from api.streaming import sse as frames
from api.v1.runs import events_view

PAGE = 500
"""Events read at once."""
LOOK_SECONDS = 15.0
"""After which a run is looked at although it was not heard of: a ring between replicas may be lost."""
_log = structlog.get_logger("api")


class Follower:
    """One stream in a feed. `position`: the last id it was given."""

    __slots__ = ("left", "over", "position", "stream")

    def __init__(self, stream: connection.Stream, position: int) -> None:
        self.stream = stream
        self.position = position
        self.over = False
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave(self, over: bool = False) -> None:
        """Its task goes on: by itself, or, where it is `over`, to its end."""
        self.over = over
        if not self.left.done():
            self.left.set_result(None)

    def take(self, piece: frames.Piece, now: float) -> bool:
        """Writes the piece, if it follows and there is room. Whether the stream may stay in the feed."""
        if piece.before < self.position:
            # It read further than the feed by itself: all of the piece, or it reads the rest by itself too.
            return piece.last <= self.position
        if piece.before > self.position or self.stream.full:
            return False
        try:
            self.stream.put(piece, now)
        except ConnectionError:
            return False
        self.position = piece.last
        return True


class _Feed:
    def __init__(
        self, store: Events, run: str, position: int, now: float, drop: Callable[[str], None]
    ) -> None:
        self._store = store
        self._run = run
        self._drop = drop
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self.position = position
        self.followers: set[Follower] = set()
        self.looked = now

    def look(self) -> None:
        """Reads on, now or once more after the reading that is under way."""
        self._again = True
        if self._task is None:
            self._task = asyncio.create_task(self._read(), name=f"feed of {self._run}")

    async def _read(self) -> None:
        try:
            while self._again and self.followers:
                self._again = False
                page = await self._store.read(self._run, self.position, PAGE)
                self._give(page)
                self._again = self._again or bool(page.events)
        except (StoreUnavailable, Refused) as error:
            _log.info("feed_ended", run=self._run, error=str(error))
            self._end(over=True)
        except BaseException:
            self._end(over=True)
            raise
        finally:
            self._task = None
            self.looked = asyncio.get_running_loop().time()
            if not self.followers:
                self._drop(self._run)

    def _give(self, page: EventPage) -> None:
        now = asyncio.get_running_loop().time()
        for piece in frames.pieces(events_view.frames(page.events), self.position):
            leaving = [follower for follower in self.followers if not follower.take(piece, now)]
            for follower in leaving:
                self.followers.discard(follower)
                follower.leave()
            self.position = piece.last
        if page.ended:
            self._end(over=True)

    def _end(self, over: bool) -> None:
        for follower in self.followers:
            follower.leave(over)
        self.followers.clear()


class Feeds:
    """The feeds of all runs that are followed."""

    def __init__(self, store: Events) -> None:
        self._store = store
        self._feeds: dict[str, _Feed] = {}

    async def follow(self, run: str, position: int, mark: int, stream: connection.Stream) -> tuple[int, bool]:
        """Writes what the run says after `position`, as it comes. `mark`: of the page that had nothing.

        Returns the last id that was given, and whether the stream is over: if not, it is to wait until it
        is drained and to read on by itself.
        """
        feed = self._feeds.get(run)
        if feed is not None and feed.position > position:
            return position, False
        follower = Follower(stream, position)
        if feed is None:
            now = asyncio.get_running_loop().time()
            feed = self._feeds[run] = _Feed(self._store, run, position, now, self._forget)
            feed.followers.add(follower)
            self._store.listen(run, mark, feed.look)
        else:
            feed.followers.add(follower)
        try:
            await follower.left
        finally:
            feed.followers.discard(follower)
            if not feed.followers:
                self._forget(run)
        return follower.position, follower.over

    def look(self, now: float) -> None:
        """Reads on where nothing was heard for long."""
        for feed in list(self._feeds.values()):
            if now - feed.looked >= LOOK_SECONDS:
                feed.looked = now
                feed.look()

    def _forget(self, run: str) -> None:
        feed = self._feeds.get(run)
        if feed is not None and not feed.followers:
            del self._feeds[run]
            self._store.unlisten(run)
