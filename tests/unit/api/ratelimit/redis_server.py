"""A real Redis on a free loopback port, which always exits with the test process."""

import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.testbed.ports import free_port, until_listening
from tests.unit.api.store.postgres_server import die_with_parent

MISSING = "no redis-server: `make tools` installs the package redis-server"
PASSWORD = "not-to-be-logged"


def program() -> str | None:
    """Return the path of the server program, or None."""
    return shutil.which("redis-server")


class RedisServer:
    """A Redis server without persistence; a restart uses the same port."""

    def __init__(self, executable: str) -> None:
        self._executable = executable
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """Its URL for the API server."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server; return when it listens."""
        settings = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no"}
        argv = [self._executable, "--requirepass", PASSWORD]
        argv += [part for name, value in settings.items() for part in (f"--{name}", str(value))]
        self.process = subprocess.Popen(
            argv, cwd="/tmp", stdout=subprocess.DEVNULL, preexec_fn=die_with_parent
        )
        until_listening(self.port, 60)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; SIGSTOP makes the server hang, SIGCONT resumes it."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        """Kill the server; its counts are lost."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None


def serving() -> Iterator[RedisServer]:
    """Yield a running server; skip the test if the program is missing."""
    executable = program()
    if executable is None:
        pytest.skip(MISSING)
    server = RedisServer(executable)
    yield server
    server.stop()
