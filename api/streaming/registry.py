"""Registry of open event streams. Called by `api.routing.stream_response`, `api.app` and `api.auth`."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from api import errors
from api.streaming import connection

MAX_REVOKED_KEYS = 10_000
"""Revoked keys in memory: a stream of one of them may be about to open."""
MAX_STREAMS = 18_000
"""Open streams of a server whose maximum of connections is unknown."""
HEARTBEAT_SECONDS = 1.0
"""Interval of the check of all streams; ten thousand idle streams take some milliseconds."""


@dataclass(slots=True)
class _OpenStream:
    key_id: str
    expires_at: float
    stream: connection.EventStream | None
    project: str
    right: tuple[str, str]
    ended: bool = False


class StreamRegistry:
    """Registry of stream tasks; cancelling one ends its response properly.

    One timer serves all streams (keep-alive, expired credentials, disconnected clients), so an idle
    stream needs no timer or extra task of its own.
    """

    def __init__(
        self, on_heartbeat: Callable[[float], None] = lambda now: None, limit: int = MAX_STREAMS
    ) -> None:
        """Call `on_heartbeat` with the loop time at every heartbeat; allow `limit` open streams.

        One key may have two thirds of them, and so may the keys of one project together, if its limit
        `open_streams` allows: a client that leaks streams cannot block the others.
        """
        self._open: dict[asyncio.Task[object], _OpenStream] = {}
        self._of_key: Counter[str] = Counter()
        self._of_project: Counter[str] = Counter()
        self._revoked: OrderedDict[str, None] = OrderedDict()
        self._on_heartbeat = on_heartbeat
        self._limit = limit
        self._timer: asyncio.TimerHandle | None = None
        self.closing = False

    def register(
        self,
        key_id: str,
        seconds: float | None = None,
        stream: connection.EventStream | None = None,
        project: str = "",
        right: tuple[str, str] = ("", ""),
        project_limit: int = MAX_STREAMS,
    ) -> None:
        """Register the current task as a stream of this key, valid for `seconds` (None: no expiry).

        `project`: what the key is bound to, or empty. `right`: the scope that the stream needs, and the
        project in which it needs it. `project_limit`: how many streams the keys of `project` may have.
        Raises a 401 if the key was revoked since it was checked, a 429 if key or project has too many
        streams, a 503 if the service stops or is at its limit of streams.
        """
        if key_id in self._revoked:
            raise errors.unauthorized()
        if self.closing:
            raise errors.unavailable()
        if len(self._open) >= self._limit:
            # Streams are long-lived: if they used all connections, other requests would fail, including
            # the liveness probe of the kubelet.
            raise errors.unavailable("too many event streams are open; try again shortly")
        share = max(1, self._limit * 2 // 3)
        if self._of_key[key_id] >= share:
            raise _too_many("this key has", share)
        project_share = min(share, project_limit)
        if project and self._of_project[project] >= project_share:
            raise _too_many(f"the keys of project {project} have", project_share)
        self._of_key[key_id] += 1
        self._of_project[project] += 1
        expires_at = float("inf") if seconds is None else asyncio.get_running_loop().time() + seconds
        self._open[_current()] = _OpenStream(key_id, expires_at, stream, project, right)
        if self._timer is None:
            self._schedule_heartbeat()

    def unregister(self) -> None:
        """Unregister the stream of the current task."""
        entry = self._open.pop(_current(), None)
        if entry is not None:
            for counts, name in ((self._of_key, entry.key_id), (self._of_project, entry.project)):
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def was_ended(self, task: asyncio.Task[object]) -> bool:
        """Return whether this registry cancelled the task, as opposed to its connection."""
        entry = self._open.get(task)
        return self.closing or (entry is not None and entry.ended)

    def credentials(self) -> frozenset[str]:
        """Return the credentials with open streams, whose revocation on any replica matters here."""
        return frozenset(entry.key_id for entry in self._open.values())

    def revoke(self, key_id: str) -> None:
        """End the streams of a revoked key and reject new ones."""
        self._revoked[key_id] = None
        if len(self._revoked) > MAX_REVOKED_KEYS:
            self._revoked.popitem(last=False)
        self.end_streams(key_id)

    def end_streams(self, key_id: str, lost: Collection[tuple[str, str]] | None = None) -> None:
        """End the streams of this key or token that need a `lost` right, or all; new ones may open."""
        for task, entry in self._open.items():
            if entry.key_id == key_id and (lost is None or entry.right in lost):
                _end(task, entry)

    def close(self) -> None:
        """End every stream properly; readers resume on another replica."""
        self.closing = True
        for task in self._open:
            task.cancel()

    def _schedule_heartbeat(self) -> None:
        interval = min(HEARTBEAT_SECONDS, connection.KEEPALIVE_SECONDS / 2)
        self._timer = asyncio.get_running_loop().call_later(interval, self._heartbeat)

    def _heartbeat(self) -> None:
        now = asyncio.get_running_loop().time()
        for task, entry in self._open.items():
            if entry.expires_at <= now or (entry.stream is not None and not entry.stream.keep_alive(now)):
                _end(task, entry)
        self._on_heartbeat(now)
        self._schedule_heartbeat()


def _too_many(whose: str, limit: int) -> errors.HttpApiError:
    return errors.HttpApiError(
        429,
        f"{whose} {limit} open event streams; close some of them first",
        {"limit": limit},
        headers={"Retry-After": str(errors.RETRY_SECONDS)},
    )


def _end(task: asyncio.Task[object], entry: _OpenStream) -> None:
    if not entry.ended:
        entry.ended = True
        task.cancel()


def _current() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None
    return task
