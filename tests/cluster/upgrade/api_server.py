"""An API server of any release as a process on a private control plane, for recordings and upgrades."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.testbed.ports import free_port

TOKEN_KEY = "the key of tokens in these tests"
# The recording is old when tests run: retention must not delete it.
_CENTURY = str(100 * 365 * 24 * 3600)
_TIMEOUT_SECONDS = 120


@dataclass
class ReleaseApiServer:
    """Runs the code in `tree` while the context is open: state in `data`, user of `kubeconfig`."""

    tree: Path
    data: Path
    kubeconfig: Path
    admin: dict[str, Any]
    key: str
    settings: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = (self.data.parent / "api.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "api"],
            cwd=self.tree,
            env={
                **os.environ,
                "PYTHONPATH": str(self.tree),
                "KUBECONFIG": str(self.kubeconfig),
                "CREWYARD_DATA": str(self.data),
                "CREWYARD_NAMESPACE": "crews",
                "CREWYARD_TOKEN_KEY": TOKEN_KEY,
                "CREWYARD_PUBLIC_URL": "http://yard.example",
                "CREWYARD_PORT": str(port),
                "CREWYARD_ADMIN_KEYS": json.dumps([self.admin]),
                "CREWYARD_RUN_TTL": _CENTURY,
                "CREWYARD_RECORD_TTL": _CENTURY,
                **self.settings,
            },
            stdout=self._log,
            stderr=self._log,
        )
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while self.call("GET", "/readyz")[0] != 200:
            if self.process.poll() is not None or time.monotonic() > deadline:
                log = (self.data.parent / "api.log").read_text()[-4000:]
                raise AssertionError(f"the API server is not ready:\n{log}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=120)
        self.process.kill()
        self.process.wait(timeout=120)
        self._log.close()

    def call(
        self, method: str, path: str, body: Any = None, key: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Return status and JSON (or bytes) of a call; status 0 without a response."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        all_headers = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json"}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=raw, method=method, headers=all_headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, _body(response.headers.get("Content-Type", ""), response.read())
        except urllib.error.HTTPError as error:
            return error.code, _body(error.headers.get("Content-Type", ""), error.read())
        except OSError:
            return 0, None

    def data_of(self, method: str, path: str, body: Any = None, **more: str) -> Any:
        """Return the data of a successful call."""
        status, content = self.call(method, path, body, **more)
        assert 200 <= status < 300, f"{method} {path}: {status} {content}"
        return content["data"] if isinstance(content, dict) else content

    def wait_for(self, path: str, is_met: Any) -> Any:
        """Return the data of a GET once `is_met` accepts it. Fail after `_TIMEOUT_SECONDS`."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            status, content = self.call("GET", path)
            if status == 200 and is_met(content["data"]):
                return content["data"]
            assert time.monotonic() < deadline, f"{path} is still {status}: {content}"
            time.sleep(0.2)


@dataclass(frozen=True)
class RunnerClient:
    """A client of the internal API that acts as a run's pod."""

    server: ReleaseApiServer
    run: str
    uid: str
    token: str
    nonce: str = "a nonce of the runner"

    @property
    def name(self) -> str:
        """Name of the Run object."""
        return self.run.replace("_", "-", 1)

    def post(self, action: str, **body: Any) -> tuple[int, Any]:
        """Make a call of the runner: claim, events or result."""
        holder = {"pod_uid": f"pod of {self.name}", "nonce": self.nonce}
        if action == "claim":
            holder |= {"protocol": 1, "run_uid": self.uid}
        return self.server.call(
            "POST", f"/internal/v1/runs/{self.name}/{action}", {**holder, **body}, key=self.token
        )

    def post_logs(self, first: int, *lines: str) -> tuple[int, Any]:
        """Post lines of the crew's output, numbered from `first`."""
        events = [
            {"seq": first + place, "type": "log", "time": None, "data": {"message": line, "level": "info"}}
            for place, line in enumerate(lines)
        ]
        return self.post("events", events=events)

    def put_artifact(self, name: str, content: bytes, digest: str) -> int:
        """Put an artifact; return the status."""
        return self.server.call(
            "PUT",
            f"/internal/v1/runs/{self.name}/artifacts/{name}",
            content,
            key=self.token,
            Content_Type="text/markdown",
            X_Crewyard_Pod=f"pod of {self.name}",
            X_Crewyard_Nonce=self.nonce,
            X_Crewyard_Sha256=digest,
        )[0]

    def post_result(
        self, outcome: str, last_event: int, output: Any = None, files: tuple[int, int] = (0, 0)
    ) -> int:
        """Post the result; return the status."""
        failed = outcome == "failed"
        return self.post(
            "result",
            outcome=outcome,
            reason="CrewError" if failed else None,
            message="ValueError: no tides today" if failed else None,
            duration_ms=1500,
            output=output,
            output_artifact=None,
            last_event=last_event,
            artifacts={"count": files[0], "bytes": files[1]},
        )[0]


def _body(kind: str, raw: bytes) -> Any:
    return json.loads(raw) if "json" in kind and raw else raw
