"""A run pod without a cluster: the real runner as a process, a directory for /app, and a fake API."""

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
class PodExit:
    code: int
    stdout: bytes
    stderr: str
    termination: dict[str, Any]
    seconds: float


class RunnerPod:
    """One run pod: write the crew, start the runner, wait for its exit."""

    def __init__(self, directory: Path, api: Any) -> None:
        self.before: list[str] = []  # a command in front of the interpreter
        self.api = api
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
        """Start the runner, as user `uid` if set; `variables` are CREWYARD_ variables."""
        ours = {
            "INTERNAL_URL": self.api.url,
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

    async def wait(self, seconds: float = 240) -> PodExit:
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
        return PodExit(code, stdout, stderr.decode(), json.loads(text), time.monotonic() - self._started)

    async def run(self, **variables: str) -> PodExit:
        await self.start(**variables)
        return await self.wait()

    def terminate(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)


async def wait_until(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timeout: the condition is not true"
        await asyncio.sleep(0.01)


@pytest.fixture
async def api() -> AsyncIterator[Any]:
    fake_api = fake.FakeRunAPI()
    await fake_api.start()
    yield fake_api
    await fake_api.stop()
    assert fake_api.violations == []


@pytest.fixture
async def pod(tmp_path: Path, api: Any) -> AsyncIterator[RunnerPod]:
    run_pod = RunnerPod(tmp_path, api)
    yield run_pod
    if run_pod.process is not None and run_pod.process.returncode is None:
        run_pod.process.kill()
        await run_pod.process.wait()
