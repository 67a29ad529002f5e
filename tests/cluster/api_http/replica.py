"""The API server as a process, for tests of replicas and store outages."""

import asyncio
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from crds import api_keys, pod_tokens
from tests.e2e.unavailable import repeat_unavailable
from tests.testbed.ports import free_port

TOKEN_KEY = "a key that is only used by tests"


@dataclass
class Replica:
    """One process. `settings` extend its environment; `log` has its output lines."""

    namespace: str
    directory: Path
    settings: dict[str, str]
    admin_key: Any
    process: asyncio.subprocess.Process | None = None
    log: list[str] = field(default_factory=list)
    command_prefix: tuple[str, ...] = ()
    """Command that starts the interpreter, such as `nice`."""
    module: str = "tests.unit.api.timeouts"
    """What runs: the API server with raised timeouts, or `api`, with those of the product."""

    def __post_init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        record = {
            "id": self.admin_key.key_id,
            "hash": self.admin_key.hash,
            "scopes": ["admin"],
            "plan": "enterprise",
        }
        self.process = await asyncio.create_subprocess_exec(
            *self.command_prefix, sys.executable, "-m", self.module,
            env={
                **os.environ,
                "CREWYARD_DATA": str(self.directory),
                "CREWYARD_TOKEN_KEY": TOKEN_KEY,
                "CREWYARD_NAMESPACE": self.namespace,
                "CREWYARD_PUBLIC_URL": self.url,
                "CREWYARD_PORT": str(self.port),
                "CREWYARD_ADMIN_KEYS": json.dumps([record]),
                **self.settings,
            },
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        self._reader = asyncio.create_task(self._read(self.process))
        async with asyncio.timeout(180), aiohttp.ClientSession(self.url) as session:
            while True:
                assert self.process.returncode is None, "".join(self.log)
                try:
                    async with session.get("/readyz") as response:
                        if response.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.1)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.log.append(line.decode())

    @property
    def is_leader(self) -> bool:
        """Whether the log says that this replica leads."""
        return any("this replica leads" in line for line in self.log)

    async def stop(self, signal_number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal and wait for the exit; SIGKILL simulates a lost machine."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal_number)
            await asyncio.wait_for(self.process.wait(), 120)
        if self._reader is not None:
            await self._reader
        self.process = None

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, float]:
        """Return status (0 without a response), JSON body and seconds of one call with the admin key."""
        started = time.monotonic()
        all_headers = {"Authorization": f"Bearer {self.admin_key.text}", **headers}
        try:
            async with (
                aiohttp.ClientSession(self.url) as session,
                session.request(
                    method, path, json=body, headers=all_headers, timeout=_REQUEST_TIMEOUT
                ) as response,
            ):
                content = await response.json() if response.content_type == "application/json" else None
                if response.status == 503:
                    assert response.headers["Retry-After"], "a 503 says when to try again"
                return response.status, content, time.monotonic() - started
        except aiohttp.ClientError:
            return 0, None, time.monotonic() - started

    async def call_until_available(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON body of a call, repeated after a 503."""
        status, content, _ = await repeat_unavailable(
            lambda: self.call(method, path, body), lambda response: (response[0], {"Retry-After": "1"})
        )
        return status, content

    async def call_as_pod(self, run: str, uid: str, action: str, body: dict[str, Any]) -> Any:
        """Call the internal API as a run's pod; return the response, or None if the pod must retry."""
        token = pod_tokens.mint(TOKEN_KEY, "run", self.namespace, run, uid, int(time.time()) + 600)
        json_body = {"pod_uid": "pod", "nonce": "nonce-of-the-pod", **body}
        try:
            async with (
                aiohttp.ClientSession(self.url) as session,
                session.post(
                    f"/internal/v1/runs/{run}/{action}",
                    json=json_body, headers={"Authorization": f"Bearer {token}"}, timeout=_REQUEST_TIMEOUT,
                ) as response,
            ):  # fmt: skip
                assert response.status in (200, 503), await response.text()
                return await response.json() if response.status == 200 else None
        except aiohttp.ClientError:
            return None


_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=120)


def generate_admin_key() -> Any:
    """Return an admin key for replicas."""
    return api_keys.generate()
