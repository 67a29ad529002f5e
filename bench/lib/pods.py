"""Peers of runs: bare Pods and Jobs equal to a run's pod except for the runner."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bench.lib.installation import MeasuredInstallation
from crds.kinds import POD
from tests.e2e.testbed import eventually

SCRIPT = "import time; print('first', flush=True); print(time.time_ns(), flush=True)"
_COPIED_FIELDS = ("resources", "securityContext")


async def template(installation: MeasuredInstallation) -> dict[str, Any]:
    """Return the spec of a run's pod, which the peers copy."""
    await installation.crew()
    run = await installation.testbed.post("/v1/runs", {"deployment": installation.deployment})
    name = run["id"].replace("_", "-", 1)
    await installation.testbed.kubectl("wait", f"crun/{name}", "--for=condition=Complete", "--timeout=60s")
    pod = await installation.kube.get(POD, name)
    assert pod is not None
    spec: dict[str, Any] = pod["spec"]
    return spec


def pod_spec(like: Mapping[str, Any], script: str = SCRIPT) -> dict[str, Any]:
    """Return the spec of a pod that runs a Python one-liner in the same image under the same limits."""
    crew = like["containers"][0]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": like.get("securityContext", {}),
        "containers": [
            {
                **{key: crew[key] for key in _COPIED_FIELDS if key in crew},
                "name": "crew",
                "image": crew["image"],
                "workingDir": crew.get("workingDir", "/app"),
                "command": ["python3", "-c", script],
            }
        ],
    }


def pod(like: Mapping[str, Any], script: str = SCRIPT) -> dict[str, Any]:
    """Return a Pod with that spec and a new name."""
    return {"metadata": {"name": f"bench-{secrets.token_hex(5)}"}, "spec": pod_spec(like, script)}


def job(like: Mapping[str, Any], script: str = SCRIPT) -> dict[str, Any]:
    """Return a Job of one such pod."""
    return {
        "metadata": {"name": f"bench-{secrets.token_hex(5)}"},
        "spec": {"backoffLimit": 0, "template": {"spec": pod_spec(like, script)}},
    }


async def log(installation: MeasuredInstallation, name: str, stamps: bool = False) -> str:
    """Return a pod's log, with the container runtime's timestamps if `stamps`."""
    return await installation.testbed.kubectl("logs", name, *(["--timestamps"] if stamps else []))


async def first_line(installation: MeasuredInstallation, name: str) -> float:
    """Return when the pod's first line was written, in epoch seconds, from the container log."""
    stamp = (await log(installation, name, stamps=True)).split(" ", 1)[0]
    seconds_part, _, fraction = stamp.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{seconds_part}+00:00").timestamp() + float(f"0.{fraction or 0}")


async def wait_finished(
    installation: MeasuredInstallation, name: str, seconds: float = 120
) -> dict[str, Any]:
    """Return a pod after it has ended."""
    finished_pod: dict[str, Any] = await eventually(
        lambda: installation.kube.get(POD, name),
        lambda body: body is not None and body["status"].get("phase") in ("Succeeded", "Failed"),
        seconds,
    )
    return finished_pod
