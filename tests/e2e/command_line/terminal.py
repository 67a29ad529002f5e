"""The command line at a real terminal (a pseudo-terminal of this machine)."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

CLIENT = Path(__file__).parents[3] / "client"
COMMAND = (sys.executable, "-m", "crewyard.cli.main")
SECONDS = 900.0
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a user's shell has, and no more."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(CLIENT),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        **{name: os.environ[name] for name in ("CREWYARD_URL", "CREWYARD_API_KEY") if name in os.environ},
        **more,
    }


class PseudoTerminal:
    """`crewyard` with some arguments, as a session of its own at a terminal of some width."""

    def __init__(self, home: Path, *arguments: str, columns: int = 80, **more: str) -> None:
        variables = environment(home, **{"TERM": "xterm-256color", **more})
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            # As a shell at a terminal starts it; who starts tests in the background has Ctrl-C ignored.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # The size is set before the program looks at it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.execve(COMMAND[0], [*COMMAND, *arguments], variables)
        self.raw = ""

    @property
    def text(self) -> str:
        """What was printed so far, without colours and movements."""
        return _SEQUENCE.sub("", self.raw).replace("\r\n", "\n")

    @property
    def colours(self) -> bool:
        """Whether anything was printed in colour."""
        return re.search(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|9[0-7]|38;[0-9;]+)m", self.raw) is not None

    def resize(self, columns: int) -> None:
        """Resize the terminal: the program gets SIGWINCH."""
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def press(self, keys: str) -> None:
        """Type once the program waits; `\\x03` is Ctrl-C.

        Python misses a signal between its prompt and its read: the read then waits for another key.
        """
        end = time.monotonic() + SECONDS
        while self._state() != "S":
            assert time.monotonic() < end, f"it does not wait for a key:\n{self.text}"
            time.sleep(0.01)
        os.write(self._screen, keys.encode())

    def expect(self, words: str) -> None:
        """Wait until these words were printed. Raises AssertionError with all that was printed."""
        end = time.monotonic() + SECONDS
        while words not in self.text:
            assert self._read(end), f"{words!r} was not printed:\n{self.text}"

    def finish(self) -> int:
        """The exit code, once the program has ended; what it printed is then whole."""
        end = time.monotonic() + SECONDS
        while self._read(end):
            pass
        assert time.monotonic() < end, f"it did not end:\n{self.text}"
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        os.close(self._screen)
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """End what a failed test left."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self._screen)

    def _state(self) -> str:
        """State of the program's main thread as the kernel names it: S sleeps in a system call."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def _read(self, end: float) -> bool:
        """More of what is printed; False at the program's end, or at that moment."""
        while True:
            ready, _, _ = select.select([self._screen], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return False
            try:
                piece = os.read(self._screen, 65536)
            except OSError:
                return False
            self.raw += piece.decode(errors="replace")
            return bool(piece)
