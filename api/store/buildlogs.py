"""Build logs: text per deployment, in the order it arrived. Called by the pods' routes and those of logs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LogPage:
    """Text from a byte position. `next` is where to read on; `mark` is for `BuildLogs.wait`."""

    text: str
    next: int
    mark: int


class BuildLogs:
    """The build logs of one namespace."""

    async def append(self, deployment: str, pod: str, container: str, seq: int, text: str) -> int:
        """Appends a numbered chunk once; gives the greatest number stored for this pod's container."""
        raise NotImplementedError

    async def read(self, deployment: str, start: int = 0, limit: int = 1 << 20) -> LogPage:
        """Up to about `limit` bytes from `start` (0, or an earlier `next`). An unknown one is empty."""
        raise NotImplementedError

    async def wait(self, deployment: str, mark: int, timeout: float) -> None:
        """Returns at once if something was appended since `mark`, else when it is or after `timeout` s."""
        raise NotImplementedError
