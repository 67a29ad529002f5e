"""Child process that serves requests, a line of JSON each way, without the secrets of our environment.

Base of the children of `controller.git.process` and `controller.attestation.registry`: what unpacks untrusted
input can exhaust only such a process.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any, ClassVar, Self

_ROOT = Path(__file__).resolve().parents[1]


class ChildProcess:
    """A started `python3 -m MODULE`."""

    MODULE: ClassVar[str]
    INHERITED_VARIABLES: ClassVar[tuple[str, ...]] = (
        "PATH",
        "TMPDIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "LD_LIBRARY_PATH",
    )
    MAX_RESPONSE_BYTES: ClassVar[int] = 64 << 10

    def __init__(self, process: Process) -> None:
        self.process = process

    @classmethod
    async def start(cls) -> Self:
        """Start a child with the inherited variables only."""
        environment = {name: os.environ[name] for name in cls.INHERITED_VARIABLES if name in os.environ}
        # Each arena of the allocator would count as much as the memory limit of a request.
        environment |= {"PYTHONPATH": str(_ROOT), "MALLOC_ARENA_MAX": "1", "LANG": "C.UTF-8"}
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                cls.MODULE,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=environment,
                start_new_session=True,
                limit=cls.MAX_RESPONSE_BYTES,
            )
        )

    @property
    def alive(self) -> bool:
        """Whether it can serve requests."""
        return self.process.returncode is None

    async def exchange(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the response; None if the process ended or sent no JSON object."""
        if self.process.stdin is None or self.process.stdout is None:
            return None
        with contextlib.suppress(ValueError, OSError):
            self.process.stdin.write(json.dumps(body).encode() + b"\n")
            await self.process.stdin.drain()
            response = json.loads(await self.process.stdout.readline())
            return response if isinstance(response, dict) else None
        return None

    async def end(self) -> None:
        """Kill the process and wait for its exit."""
        self.kill()
        await self.process.wait()

    def kill(self) -> None:
        """Kill the process without waiting."""
        with contextlib.suppress(ProcessLookupError):
            if self.alive:
                self.process.kill()
