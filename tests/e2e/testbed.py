"""A running Crewyard as its users see it: the API by HTTP, the objects by kubectl.

Called by the demonstration and by the end-to-end tests. Knows nothing of how
the service is made; where to find it comes from `make env`.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.e2e.unavailable import repeat_unavailable

NAMESPACE = "crews"
MIN_WAIT_SECONDS = 240.0
"""A pod that starts in two seconds needs a minute on a busy machine, and some waits are for several."""
MAX_QUOTA_ATTEMPTS = 5
MAX_CONNECTION_ATTEMPTS = 5
"""A port that a call used while no API server ran is refused for two minutes: conntrack has no pod for it."""


class TestbedError(Exception):
    """An unexpected or late response of the test bed."""


@dataclass(frozen=True)
class ApiResponse:
    """An answer of the API."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def data(self) -> Any:
        """What is in the envelope; raises TestbedError on an error."""
        if self.status >= 400:
            raise TestbedError(f"the API answered {self.status}: {json.dumps(self.body)}")
        return self.body["data"]


@dataclass(frozen=True)
class StreamMessage:
    """One message of an event stream."""

    id: str | None
    event: str
    data: Any


class RepeatingConnector(aiohttp.TCPConnector):
    """Connections from another port where the node refuses one, at most MAX_CONNECTION_ATTEMPTS."""

    async def connect(self, *arguments: Any, **named: Any) -> Any:
        """Return a connection. Raises aiohttp.ClientConnectorError."""
        for _ in range(MAX_CONNECTION_ATTEMPTS - 1):
            with contextlib.suppress(aiohttp.ClientConnectorError):
                return await super().connect(*arguments, **named)
        return await super().connect(*arguments, **named)


class E2eTestbed:
    """One installation, with an API key."""

    def __init__(self, url: str, key: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.key = key
        self._session = session

    @classmethod
    async def open(cls) -> "E2eTestbed":
        """The installation that `make env` names; ends the process with the next step where it names none."""
        url, key = os.environ.get("CREWYARD_URL"), os.environ.get("CREWYARD_API_KEY")
        if not url or not key or not os.environ.get("KUBECONFIG"):
            sys.exit('No Crewyard is named. Run: make up && eval "$(make -s env)"')
        # No event loop runs between tests: it would not see that a stopped API server closed a connection.
        connector = RepeatingConnector(force_close=True)
        return cls(
            url, key, aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=180))
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _headers(self, key: str | None, more: Mapping[str, str] | None) -> dict[str, str]:
        found = self.key if key is None else key
        return {**({"Authorization": f"Bearer {found}"} if found else {}), **(more or {})}

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> ApiResponse:
        """One call, repeated while the service is unavailable, as its clients do.

        `path` may be a whole address. An empty `key` sends none.
        """
        url = path if path.startswith("http") else self.url + path

        async def attempt() -> ApiResponse:
            async with self._session.request(
                method, url, json=body, data=data, params=params, headers=self._headers(key, headers)
            ) as response:
                raw = await response.read()
                is_json = response.content_type == "application/json" and raw
                return ApiResponse(response.status, json.loads(raw) if is_json else raw, response.headers)

        return await repeat_unavailable(attempt, lambda response: (response.status, response.headers))

    async def get(self, path: str, **params: str) -> Any:
        """The data of a GET."""
        return (await self.call("GET", path, params=params)).data

    async def post(self, path: str, body: Any) -> Any:
        """The data of a POST."""
        return (await self.call("POST", path, body)).data

    async def stream(
        self, path: str, last_id: str | None = None, seconds: float = 600
    ) -> AsyncIterator[StreamMessage]:
        """The messages of an event stream to its end. Reads the format itself, as any client would."""
        more = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
        limit = aiohttp.ClientTimeout(total=seconds)

        async def attempt() -> aiohttp.ClientResponse:
            response = await self._session.get(
                self.url + path, headers=self._headers(None, more), timeout=limit
            )
            if response.status == 503:
                await response.read()
            return response

        async with await repeat_unavailable(attempt, lambda found: (found.status, found.headers)) as response:
            if response.status == 204:
                return
            if response.status != 200:
                raise TestbedError(f"the stream answered {response.status}: {await response.text()}")
            fields: dict[str, list[str]] = {}
            async for raw in response.content:
                line = raw.decode().rstrip("\r\n")
                if not line:
                    if "data" in fields:
                        text = "\n".join(fields["data"])
                        yield StreamMessage(
                            fields.get("id", [None])[-1], fields.get("event", ["message"])[-1], _json(text)
                        )
                    fields = {}
                elif not line.startswith(":"):
                    name, _, value = line.partition(":")
                    fields.setdefault(name, []).append(value.removeprefix(" "))

    async def events(self, run: str, last_id: str | None = None) -> list[StreamMessage]:
        """All events of a run, to its end."""
        return [message async for message in self.stream(f"/v1/runs/{run}/events", last_id)]

    async def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """What kubectl prints. Raises TestbedError with its stderr; without `check` both are returned.

        Creates at the same time compete for the status of a ResourceQuota: a refused one is sent again.
        """
        for attempt in range(1, MAX_QUOTA_ATTEMPTS + 1):
            process = await asyncio.create_subprocess_exec(
                "kubectl",
                "-n",
                NAMESPACE,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, complaint = await asyncio.wait_for(process.communicate((stdin or "").encode()), 300)
            if b"cannot be fulfilled on resourcequotas" not in complaint or attempt == MAX_QUOTA_ATTEMPTS:
                break
            await asyncio.sleep(0.2 * attempt)
        if process.returncode and check:
            raise TestbedError(f"kubectl {' '.join(arguments)}: {complaint.decode().strip()}")
        return out.decode() if check else out.decode() + complaint.decode()

    async def apply(self, kind: str, name: str, spec: Any, verb: str = "apply", check: bool = True) -> str:
        """Apply (or creates) one of our objects, as a user with a file would."""
        whole = {
            "apiVersion": "crewyard.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        return await self.kubectl(verb, "-f", "-", stdin=json.dumps(whole), check=check)

    async def object(self, kind: str, name: str) -> Any:
        """An object as kubectl shows it."""
        return json.loads(await self.kubectl("get", f"{kind}.crewyard.dev", name, "-o", "json"))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def eventually(
    look: Callable[[], Awaitable[Any]],
    until: Callable[[Any], bool],
    seconds: float = MIN_WAIT_SECONDS,
    pause: float = 0.1,
) -> Any:
    """Poll `look` until `until` accepts its value. Raises TestbedError with the last value.

    It gives up after `seconds`, but not before MIN_WAIT_SECONDS.
    """
    seconds = max(seconds, MIN_WAIT_SECONDS)
    end = time.monotonic() + seconds
    while True:
        seen = await look()
        if until(seen):
            return seen
        if time.monotonic() > end:
            raise TestbedError(
                f"not so after {seconds:.0f} s; last seen: {json.dumps(seen, default=str)[:2000]}"
            )
        await asyncio.sleep(pause)
