"""A real PostgreSQL server in a temporary directory, on a Unix socket, for the tests of the store.

It dies with the test process. It runs without fsync: durability is tested by the sessions' settings
only.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

from dev.packages import postgresql_programs
from kube.owned_directory import owned_directory

PROGRAMS = postgresql_programs()
MISSING = "no PostgreSQL: `make tools` installs the package postgresql"
DIRECTORY_PREFIX = "crewyard-postgres-"
_USER = "postgres"
PASSWORD = "not-to-be-logged"
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Let the kernel kill the program when this process dies. Runs between fork and exec."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


class PostgresServer:
    """A PostgreSQL server; `directory` has its socket.

    `more` are additional settings, `tls` a directory with its server.key and server.crt.
    """

    def __init__(self, more: dict[str, str] | None = None, tls: Path | None = None) -> None:
        self._more = more or {}
        # The user that PostgreSQL runs as cannot read pytest's directories.
        self._owned = contextlib.ExitStack()
        owned = self._owned.enter_context(owned_directory(Path(tempfile.gettempdir()), DIRECTORY_PREFIX))
        owned.chmod(0o755)
        self.directory = owned / "server"
        self.directory.mkdir(0o700)
        self._as = {"user": _USER, "group": _USER, "extra_groups": ()} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(self.directory, _USER, _USER)
        password = self.directory / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run(
            "initdb", "-D", "data", "-U", "crewyard", "--pwfile=password", "--auth=scram-sha-256",
            "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync",
        )  # fmt: skip
        for file in (tls / "server.key", tls / "server.crt") if tls else ():
            copy = shutil.copy(file, self.directory / "data" / file.name)
            Path(copy).chmod(0o600)
            if self._as:
                shutil.chown(copy, _USER, _USER)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [PROGRAMS / program, *arguments],
            cwd=self.directory, check=True, capture_output=True, timeout=240, **self._as,  # type: ignore[call-overload]
        )  # fmt: skip

    def start(self) -> None:
        """Start the server; return once it answers."""
        settings = {
            "listen_addresses": "", "unix_socket_directories": str(self.directory), "fsync": "off",
            "full_page_writes": "off", "max_connections": "200", "shared_buffers": "32MB", **self._more,
        }  # fmt: skip
        argv = [str(PROGRAMS / "postgres"), "-D", "data"]
        argv += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = (self.directory / "log").open("ab")
        self._process = subprocess.Popen(
            argv, cwd=self.directory, stdout=log, stderr=log, preexec_fn=die_with_parent, **self._as  # type: ignore[call-overload]
        )  # fmt: skip
        log.close()
        end = time.monotonic() + 120
        while True:
            try:
                self.sql("postgres", "select 1")
                return
            except subprocess.CalledProcessError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server; SIGQUIT simulates a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(120)
            self._process = None

    @property
    def pid(self) -> int:
        """The pid of the parent process."""
        assert self._process is not None
        return self._process.pid

    def children(self) -> list[int]:
        """Return the pids of its connections and helpers."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(number) for number in listed.split()]

    def sql(self, database: str, text: str) -> str:
        """Return the output of psql for a statement."""
        target = ("-h", self.directory, "-p", self._more.get("port", "5432"))
        return subprocess.run(
            [PROGRAMS / "psql", *target, "-U", "crewyard", "-d", database, "-XAtqc", text],
            env={"PGPASSWORD": PASSWORD}, check=True, capture_output=True, timeout=120, text=True,
        ).stdout.strip()  # fmt: skip

    def database(self, template: str = "template0") -> str:
        """Create a database; return its URL."""
        name = f"t{uuid.uuid4().hex}"
        self.sql("postgres", f"create database {name} template {template}")
        return self.url(name)

    def url(self, name: str, host: Path | None = None) -> str:
        """Return the URL of a database, through this server's socket or another one's."""
        return f"postgresql+asyncpg://crewyard:{PASSWORD}@/{name}?host={host or self.directory}"

    def close(self) -> None:
        """Stop the server and delete its directory."""
        self.stop()
        self._owned.close()


@contextlib.asynccontextmanager
async def halted(server: PostgresServer) -> AsyncIterator[None]:
    """Halt all processes of the server: it does not answer, but connections stay open."""
    pids = [server.pid, *server.children()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
