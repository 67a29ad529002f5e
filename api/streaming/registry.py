"""The event streams that are open, and whose. Called by `api.streaming.response`, `api.app` and whoever revokes keys."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from api import errors
from api.streaming import connection

REMEMBERED = 10_000
"""Revoked keys that are remembered: a stream of one may be about to open."""
BEAT_SECONDS = 1.0
"""How often all streams are looked at; one look at ten thousand idle ones takes some milliseconds."""


@dataclass(slots=True)
class _Open:
    key_id: str
    until: float
    stream: connection.Stream | None
    ended: bool = False


class Streams:
    """Every stream is a task; each can be ended so that its answer ends properly.

    One beat looks after all of them, so that an idle stream costs neither a task nor a timer of its own:
    signs of life, keys that expire, readers that have left.
    """

    def __init__(self, beside: Callable[[float], None] = lambda now: None, most: int = 18_000) -> None:
        """`beside` is called at every beat with the loop's time; `most` streams are open at once.

        Two thirds of them may be one key's: whatever a client forgets to close, others still get theirs.
        """
        self._open: dict[asyncio.Task[object], _Open] = {}
        self._of_key: Counter[str] = Counter()
        self._revoked: OrderedDict[str, None] = OrderedDict()
        self._beside = beside
        self._most = most
        self._timer: asyncio.TimerHandle | None = None
        self.closing = False

    def enter(
        self, key_id: str, seconds: float | None = None, stream: connection.Stream | None = None
    ) -> None:
        """The current task is now a stream of this key, which holds for `seconds` more (None: for ever).

        Raises the 401 where the key was revoked since it was checked, the 429 where it has too many streams,
        the 503 where the service stops or has as many streams as it may.
        """
        if key_id in self._revoked:
            raise errors.unauthorized()
        if self.closing:
            raise errors.unavailable()
        if len(self._open) >= self._most:
            # Streams stay: were they all the connections there may be, nobody else would be answered, nor
            # the probe by which the kubelet sees that this process lives.
            raise errors.unavailable("too many event streams are open here; try again shortly")
        share = max(1, self._most * 2 // 3)
        if self._of_key[key_id] >= share:
            raise errors.ApiError(
                429,
                f"{share} event streams of this key are open here; close some of them first",
                {"limit": share},
                headers={"Retry-After": str(errors.RETRY_SECONDS)},
            )
        self._of_key[key_id] += 1
        until = float("inf") if seconds is None else asyncio.get_running_loop().time() + seconds
        self._open[_current()] = _Open(key_id, until, stream)
        if self._timer is None:
            self._wind()

    def leave(self) -> None:
        """The current task's stream has ended."""
        found = self._open.pop(_current(), None)
        if found is not None:
            self._of_key[found.key_id] -= 1
            if not self._of_key[found.key_id]:
                del self._of_key[found.key_id]
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ended(self, task: asyncio.Task[object]) -> bool:
        """Whether the task was cancelled from here, and not by its connection."""
        found = self._open.get(task)
        return self.closing or (found is not None and found.ended)

    def holders(self) -> frozenset[str]:
        """The keys that have streams open: those whose revocation elsewhere matters here."""
        return frozenset(found.key_id for found in self._open.values())

    def revoke(self, key_id: str) -> None:
        """The key holds no longer: its streams end, and none opens any more."""
        self._revoked[key_id] = None
        if len(self._revoked) > REMEMBERED:
            self._revoked.popitem(last=False)
        self.end(key_id)

    def end(self, key_id: str) -> None:
        """The streams of this key, or of what else was shown, end; others may open."""
        for task, found in self._open.items():
            if found.key_id == key_id:
                _end(task, found)

    def close(self) -> None:
        """Wakes every stream; each ends its answer properly, and its reader resumes elsewhere."""
        self.closing = True
        for task in self._open:
            task.cancel()

    def _wind(self) -> None:
        pause = min(BEAT_SECONDS, connection.KEEPALIVE_SECONDS / 2)
        self._timer = asyncio.get_running_loop().call_later(pause, self._beat)

    def _beat(self) -> None:
        now = asyncio.get_running_loop().time()
        for task, found in self._open.items():
            if found.until <= now or (found.stream is not None and not found.stream.beat(now)):
                _end(task, found)
        self._beside(now)
        self._wind()


def _end(task: asyncio.Task[object], found: _Open) -> None:
    if not found.ended:
        found.ended = True
        task.cancel()


def _current() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None
    return task
