"""Kubernetes API client over kubectl, which supports every login method of a kubeconfig.

Used for clusters that this repository does not run itself. Slower than `dev.cluster.kube_client`, with the
same calls.
"""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dev.cluster.kube_client import KubeApi, KubeApiError
from dev.errors import DevClusterError

_TIMEOUT_SECONDS = 60
_APPLY_TIMEOUT_SECONDS = 120
_APPLY = ("apply", "--server-side", "--force-conflicts", "--field-manager=crewyard-deploy")
_HTTP_STATUS = {"NotFound": 404, "AlreadyExists": 409, "Conflict": 409, "Forbidden": 403, "Unauthorized": 401}


class KubectlApi(KubeApi):
    """API client for one kubeconfig and one kubectl program."""

    def __init__(self, program: str, kubeconfig: Path) -> None:
        self._command = [program, f"--kubeconfig={kubeconfig}"]

    def run(self, *arguments: str, stdin: str | None = None, seconds: float = _TIMEOUT_SECONDS) -> str:
        """Return the output of `kubectl arguments`. Raises KubeApiError on failure or after `seconds`."""
        try:
            completed = subprocess.run(
                [*self._command, *arguments],
                input=stdin,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise KubeApiError(0, f"kubectl {arguments[0]} did not answer within {seconds:.0f} s.") from error
        except OSError as error:
            raise DevClusterError(f"kubectl cannot be started: {error}") from error
        if completed.returncode != 0:
            raise KubeApiError(
                _status(completed.stderr), f"kubectl {arguments[0]}: {completed.stderr.strip()[-2000:]}"
            )
        return completed.stdout

    def apply(self, *source: str, stdin: str | None = None) -> list[str]:
        """Apply `-k DIRECTORY` or `-f -` on the server; return kubectl's lines, one for each object."""
        return self.run(*_APPLY, *source, stdin=stdin, seconds=_APPLY_TIMEOUT_SECONDS).splitlines()

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON response of a GET, POST or DELETE. Raises KubeApiError."""
        return json.loads(self.run(*_raw(method, path), stdin=None if body is None else json.dumps(body)))

    def text(self, path: str) -> str:
        """Return the response as text, such as a container's log."""
        return self.run("get", "--raw", path)


def _raw(method: str, path: str) -> Sequence[str]:
    match method:
        case "GET":
            return ("get", "--raw", path)
        case "POST":
            return ("create", "--raw", path, "-f", "-")
        case "DELETE":
            return ("delete", "--raw", path)
    raise ValueError(f"kubectl does not support raw {method}")


def _status(stderr: str) -> int:
    """Return the HTTP status behind `Error from server (NotFound): …`; 0 if there is none."""
    match = re.search(r"Error from server \((\w+)\)", stderr)
    return _HTTP_STATUS.get(match[1], 500) if match else 0
