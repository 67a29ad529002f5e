"""A run pod without a cluster: the real runner as a process, a directory for /app, and a stand-in facade."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner import api_server as fake

ROOT = Path(__file__).parents[3]


@dataclass
class Ended:
    code: int
    stdout: bytes
    stderr: str
    termination: dict[str, Any]
    seconds: float


class Pod:
    """One run pod: write the crew, start, wait."""

    def __init__(self, directory: Path, facade: Any) -> None:
        self.before: list[str] = []  # a command in front of the interpreter
        self.facade = facade
        self.app = directory / "app"
        (self.app / "artifacts").mkdir(parents=True)
        self.termination_log = directory / "termination-log"
        self.environ: dict[str, str] = {}
        self.process: asyncio.subprocess.Process | None = None
        self._started = 0.0

    def crew(self, text: str, name: str = "main.py") -> None:
        path = self.app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    async def start(self, uid: str = "", python: str = sys.executable, **variables: str) -> None:
        """`uid`: run as that user, as a pod does. The other arguments are CREWYARD_ variables."""
        ours = {
            "INTERNAL_URL": self.facade.url,
            "RUN": fake.RUN,
            "RUN_UID": fake.RUN_UID,
            "TOKEN": fake.TOKEN,
            "POD_UID": fake.POD_UID,
            "START_TIMEOUT": "90",
            "APP": str(self.app),
            "TERMINATION_LOG": str(self.termination_log),
            "STOP_GRACE": "0.6",
            "FLUSH_GRACE": "60",
            "REPORT_SECONDS": "90",
            "SCAN_SECONDS": "0.1",
            **variables,
        }
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith(("CREWYARD_", "PYTHON"))
        }
        environ |= {f"CREWYARD_{name}": value for name, value in ours.items()} | self.environ
        self._started = time.monotonic()
        self.process = await asyncio.create_subprocess_exec(
            *self.before,
            python,
            "-I", "-S", str(ROOT / "runner"),
            env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            user=int(uid) if uid else None,
        )  # fmt: skip

    async def wait(self, seconds: float = 120) -> Ended:
        assert self.process is not None
        try:
            stdout, stderr = await asyncio.wait_for(self.process.communicate(), seconds)
        except TimeoutError:
            self.process.kill()
            raise
        text = self.termination_log.read_text() if self.termination_log.exists() else "{}"
        assert len(text.encode()) <= 4096
        code = self.process.returncode
        assert code is not None
        return Ended(code, stdout, stderr.decode(), json.loads(text), time.monotonic() - self._started)

    async def run(self, **variables: str) -> Ended:
        await self.start(**variables)
        return await self.wait()

    def terminate(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


@pytest.fixture
async def facade() -> AsyncIterator[Any]:
    made = fake.Facade()
    await made.start()
    yield made
    await made.stop()
    assert made.violations == []


@pytest.fixture
async def pod(tmp_path: Path, facade: Any) -> AsyncIterator[Pod]:
    made = Pod(tmp_path, facade)
    yield made
    if made.process is not None and made.process.returncode is None:
        made.process.kill()
        await made.process.wait()
