"""The peers: bare Pods and Jobs that are like a run's pod in everything but the runner."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bench.lib.installation import Ground
from crds.kinds import POD
from tests.e2e.yard import eventually

SCRIPT = "import time; print('first', flush=True); print(time.time_ns(), flush=True)"
_LIKE = ("resources", "securityContext")


async def template(ground: Ground) -> dict[str, Any]:
    """The spec of a run's pod, for its peers to be like."""
    await ground.crew()
    run = await ground.yard.post("/v1/runs", {"deployment": ground.deployment})
    name = run["id"].replace("_", "-", 1)
    await ground.yard.kubectl("wait", f"crun/{name}", "--for=condition=Complete", "--timeout=60s")
    pod = await ground.kube.get(POD, name)
    assert pod is not None
    spec: dict[str, Any] = pod["spec"]
    return spec


def pod_spec(like: Mapping[str, Any], script: str = SCRIPT) -> dict[str, Any]:
    """The spec of a pod that runs a Python one-liner in the same image under the same limits."""
    crew = like["containers"][0]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": like.get("securityContext", {}),
        "containers": [
            {
                **{key: crew[key] for key in _LIKE if key in crew},
                "name": "crew",
                "image": crew["image"],
                "workingDir": crew.get("workingDir", "/app"),
                "command": ["python3", "-c", script],
            }
        ],
    }


def pod(like: Mapping[str, Any], script: str = SCRIPT) -> dict[str, Any]:
    """A Pod with that spec and a name of its own."""
    return {"metadata": {"name": f"bench-{secrets.token_hex(5)}"}, "spec": pod_spec(like, script)}


def job(like: Mapping[str, Any], script: str = SCRIPT) -> dict[str, Any]:
    """A Job of one such pod."""
    return {
        "metadata": {"name": f"bench-{secrets.token_hex(5)}"},
        "spec": {"backoffLimit": 0, "template": {"spec": pod_spec(like, script)}},
    }


async def log(ground: Ground, name: str, stamps: bool = False) -> str:
    """What a pod printed, with the container runtime's time stamps if asked for."""
    return await ground.yard.kubectl("logs", name, *(["--timestamps"] if stamps else []))


async def first_line(ground: Ground, name: str) -> float:
    """When a pod's first line was written, in epoch seconds, by the container log's nanoseconds."""
    stamp = (await log(ground, name, stamps=True)).split(" ", 1)[0]
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{fraction or 0}")


async def finished(ground: Ground, name: str, seconds: float = 120) -> dict[str, Any]:
    """A pod, once it has ended."""
    found: dict[str, Any] = await eventually(
        lambda: ground.kube.get(POD, name),
        lambda seen: seen is not None and seen["status"].get("phase") in ("Succeeded", "Failed"),
        seconds,
    )
    return found
