"""A real Redis on a free port of loopback, which ends with the test process however that ends."""

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
    """Where the server's program is."""
    return shutil.which("redis-server")


class Server:
    """The server, which keeps nothing on disk. It comes back on the same port."""

    def __init__(self, executable: str) -> None:
        self._executable = executable
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """Its address for the facade."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts it; returns once it listens."""
        settings = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no"}
        argv = [self._executable, "--requirepass", PASSWORD]
        argv += [part for name, value in settings.items() for part in (f"--{name}", str(value))]
        self.process = subprocess.Popen(
            argv, cwd="/tmp", stdout=subprocess.DEVNULL, preexec_fn=die_with_parent
        )
        until_listening(self.port, 60)

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP: it hangs; SIGCONT: it goes on."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        """Ends it at once, with all it counted."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None


def serving() -> Iterator[Server]:
    """For a fixture: a server while it is used; the test is skipped where there is no program."""
    executable = program()
    if executable is None:
        pytest.skip(MISSING)
    server = Server(executable)
    yield server
    server.stop()
