"""The work of a campaign: the same scripted crew as Runs, by POST and by kubectl, and as bare Jobs.

Called by the tests. What was asked for is kept for the checker, also where no answer came.
"""

import asyncio
import hashlib
import json
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiohttp

from crds.kinds import Kind
from crds.names import name_of
from kube import errors
from tests.campaign.checks.observed import SUCCEEDED, RequestedRun
from tests.campaign.testbed import LIMITS, CampaignTestbed

JOB = Kind("batch", "v1", "jobs", "Job")
PATIENCE = 180.0
"""Seconds for which a caller retries without a response."""
Script = dict[str, Any]
ENDS = {"returns": SUCCEEDED, "raises": "failed:CrewError"}
"""How scripts of `draw` end."""


def draw(chance: random.Random, most_seconds: float = 2.0) -> Script:
    """A script: a few steps, an artifact, some seconds; one in five fails."""
    steps = chance.randint(1, 20)
    return {
        "events": steps,
        "pause": round(chance.uniform(0, most_seconds / 2 / steps), 4),
        "sleep": round(chance.uniform(0, most_seconds / 2), 3),
        "artifact": chance.choice((1, 1000, 300_000)),
        "exit": chance.choice(("returns",) * 4 + ("raises",)),
    }


class Workload:
    """Asks for runs of a test bed, and keeps what it asked for. `tolerant` as in `observed.RequestedRun`."""

    def __init__(self, testbed: CampaignTestbed, tolerant: bool = False) -> None:
        self._testbed, self._tolerant = testbed, tolerant
        self.requested: list[RequestedRun] = []
        self.uploads: dict[str, str] = {}
        """The sha256 of archives that were answered for, by the upload's id."""

    def _keep(
        self, name: str, script: Script, ends: Sequence[str], acknowledged: bool = True, applied: bool = False
    ) -> None:
        found = ends or (ENDS[script.get("exit", "returns")],)
        self.requested.append(
            RequestedRun(name, script, frozenset(found), acknowledged, self._tolerant, applied)
        )

    def allow(self, run: str, end: str) -> None:
        """Also accept this end: the run got a fault of its own."""
        self.requested = [
            replace(one, ends=one.ends | {end}) if one.run == run else one for one in self.requested
        ]

    def _input(self, script: Script) -> Script:
        return {"ledger": self._testbed.ledger.url, **script}

    async def post(self, script: Script, ends: Sequence[str] = (), **more: Any) -> str:
        """A run by POST with an Idempotency-Key, repeated until it is acknowledged; gives its name."""
        body = {"deployment": self._testbed.project, "input": self._input(script), **more}
        headers = {"Idempotency-Key": secrets.token_hex(12)}
        made = await self._testbed.ask("POST", "/v1/runs", body, **headers)
        name = name_of(made["id"])
        self._keep(name, script, ends)
        return name

    async def post_once(self, script: Script) -> str | None:
        """A run by one POST without a key: None where there was no answer, or a 5xx."""
        body = {"deployment": self._testbed.project, "input": self._input(script)}
        try:
            status, found = await self._testbed.call("POST", "/v1/runs", body)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            status, found = 0, None
        if status == 201 and isinstance(found, dict):
            name = name_of(found["data"]["id"])
            self._keep(name, script, ())
            return name
        assert status == 0 or status >= 500, (status, found)
        self._keep("", script, (), acknowledged=False)
        return None

    async def upload(self, size: int) -> bool:
        """Upload an archive once, without a build. Return whether it was acknowledged."""
        data = secrets.token_bytes(size)
        sha256 = hashlib.sha256(data).hexdigest()
        body = {"project": self._testbed.project, "size": size, "sha256": sha256}
        try:
            status, found = await self._testbed.call("POST", "/v1/uploads", body)
            if status != 201:
                return False
            made = found["data"]
            put = self._testbed.session.put(made["upload_url"], data=data, headers=made["headers"])
            async with put as answer:
                if answer.status >= 300:
                    return False
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return False
        self.uploads[made["id"]] = sha256
        return True

    async def apply(self, scripts: Sequence[Script], ends: Sequence[str] = ()) -> list[str]:
        """Create Runs by one `kubectl apply` of a file with all of them; return their names."""
        prefix = f"run-{secrets.token_hex(5)}"
        spec = [{"project": self._testbed.project, "input": self._input(script)} for script in scripts]
        names = [f"{prefix}-{number}" for number in range(len(scripts))]
        items = [
            {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Run", "metadata": {"name": name}, "spec": one}
            for name, one in zip(names, spec, strict=True)
        ]
        whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
        end = asyncio.get_running_loop().time() + PATIENCE
        while (output := await self._kubectl_apply(whole)) is not None:
            # As a person would: the same file again.
            assert asyncio.get_running_loop().time() < end, output
            await asyncio.sleep(1)
        for name, script in zip(names, scripts, strict=True):
            self._keep(name, script, ends, applied=True)
        return names

    async def _kubectl_apply(self, whole: bytes) -> str | None:
        """None on success, else the output of kubectl."""
        process = await asyncio.create_subprocess_exec(
            "kubectl", "-n", self._testbed.namespace, "apply", "-f", "-", "--request-timeout=30s",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(whole), PATIENCE)
        return output.decode() if process.returncode else None

    async def job(self, script: Script, ends: Sequence[str] = ()) -> str:
        """The same as a bare Job that is never tried again; gives its name."""
        name = f"job-{secrets.token_hex(6)}"
        words = ends or (ENDS[script.get("exit", "returns")],)
        made = job(name, self._testbed.image, self._input(script))
        end = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                await self._testbed.kube.create(JOB, made)
                break
            except errors.AlreadyExists:
                break
            except errors.KubeError as error:
                assert asyncio.get_running_loop().time() < end, error
                await asyncio.sleep(0.5)
        self._keep(name, script, tuple(word.partition(":")[0] for word in words))
        return name


def job(name: str, image: str, script: Mapping[str, Any]) -> dict[str, Any]:
    """A Job whose pod is like a Run's: image, user, limits, no token."""
    container = {
        "name": "crew",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        # Not as process 1, which no signal of its own can end.
        "command": ["sh", "-c", "python3 /app/main.py; exit $?"],
        "workingDir": "/app",
        "env": [{"name": "SCRIPT", "value": json.dumps(script)}, {"name": "HOME", "value": "/home/crew"}],
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"cpu": "1", **LIMITS},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "restartPolicy": "Never",
        "hostname": name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    return {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": spec}}}
