"""The peer: a bare Job with the run pod's own template, and when things happened to it."""

import json
import secrets
import time
from typing import Any

from tests.e2e.yard import NAMESPACE, Yard

_SCRIPT = "import time; print('first', flush=True); print(time.time_ns(), flush=True)"


def manifest(template: dict[str, Any], image: str) -> dict[str, Any]:
    """A Job that runs a Python one-liner in the image, otherwise like the run pod."""
    container = {
        **{
            key: template["containers"][0][key]
            for key in ("resources", "securityContext")
            if key in template["containers"][0]
        },
        "name": "crew",
        "image": image,
        "command": ["python3", "-I", "-S", "-c", _SCRIPT],
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": template.get("securityContext", {}),
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"bench-{secrets.token_hex(4)}", "namespace": NAMESPACE},
        "spec": {"backoffLimit": 0, "template": {"spec": spec}},
    }


async def first_line(yard: Yard, pod: str) -> float:
    """When a pod's first line was written, in epoch seconds, by the container log's nanoseconds."""
    stamp = (await yard.kubectl("logs", pod, "--timestamps")).split(" ", 1)[0]
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return (
        time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(f"0.{fraction or 0}")
    )


async def run(yard: Yard, body: dict[str, Any]) -> tuple[float, float]:
    """Creates the Job and waits: seconds from creation to first line, and from exit to Complete."""
    name = body["metadata"]["name"]
    begun = time.time()
    await yard.kubectl("create", "-f", "-", stdin=json.dumps(body))
    await yard.kubectl("wait", f"job/{name}", "--for=condition=Complete", "--timeout=60s")
    complete = time.time()
    pods = json.loads(await yard.kubectl("get", "pods", "-l", f"job-name={name}", "-o", "json"))["items"]
    pod = pods[0]["metadata"]["name"]
    started = await first_line(yard, pod)
    ended = int((await yard.kubectl("logs", pod)).split()[-1]) / 1e9
    await yard.kubectl("delete", "job", name, "--wait=false")
    return started - begun, complete - ended
