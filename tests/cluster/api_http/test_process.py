"""The API server as a process: settings, log and shutdown."""

import asyncio
import json
import os
import secrets
import signal
import sys
import time

import aiohttp
import pytest

from crds import api_keys
from crds.kinds import RUN
from tests.cluster.api_http.auth.accounts import account, token
from tests.testbed.ports import free_port

KEY = secrets.token_hex(16)


async def start_process(tmp_path, module="api", **environment):
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        env={**os.environ, "CREWYARD_DATA": str(tmp_path / "data"), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"CREWYARD_TOKEN_KEY": "", "CREWYARD_PUBLIC_URL": "ftp://x"},
            ["CREWYARD_TOKEN_KEY", "CREWYARD_PUBLIC_URL"],
        ),
        ({"CREWYARD_TOKEN_KEY": KEY, "CREWYARD_ADMIN_KEYS": "{"}, ["CREWYARD_ADMIN_KEYS"]),
        ({"CREWYARD_TOKEN_KEY": KEY, "CREWYARD_DATA": "/dev/null/x"}, ["/dev/null/x"]),
    ],
)
async def test_invalid_settings_exit_naming_them(tmp_path, settings, words):
    """Slow: the first start of the API server compiles its modules."""
    process = await start_process(tmp_path, **settings)
    _, stderr = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 1
    assert [word for word in words if word not in stderr.decode()] == []
    assert "Traceback" not in stderr.decode()


async def test_sigterm_ends_streams_and_log_has_no_secret(tmp_path, kube):
    admin_key = api_keys.generate()
    record = {"id": admin_key.key_id, "hash": admin_key.hash, "scopes": ["admin"], "plan": "enterprise"}
    port = free_port()
    started = time.monotonic()
    process = await start_process(
        tmp_path,
        "tests.unit.api.timeouts",
        CREWYARD_TOKEN_KEY=KEY,
        CREWYARD_NAMESPACE=kube.namespace,
        CREWYARD_PUBLIC_URL=f"http://127.0.0.1:{port}",
        CREWYARD_PORT=str(port),
        CREWYARD_ADMIN_KEYS=json.dumps([record]),
        CREWYARD_RATE_LIMIT_URL="redis://:octopus@127.0.0.1:1/0",
    )
    await account(kube, "ci", "read")
    cluster_token = await token(kube, "ci")
    headers = {"Authorization": f"Bearer {admin_key.text}"}
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session,
        asyncio.timeout(400),
    ):
        while True:
            try:
                async with session.get("/readyz") as response:
                    if response.status == 200:
                        break
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
        async with session.post("/v1/projects", json={"name": "crew"}) as response:
            assert response.status == 201
        async with session.put("/v1/projects/crew/env", json={"variables": {"A": "swordfish"}}) as response:
            assert response.status == 200
        async with session.post("/v1/uploads", json={"project": "crew", "size": 3}) as response:
            ticket = (await response.json())["data"]
        async with session.put(ticket["upload_url"], data=b"abc") as response:
            assert response.status == 200
        await kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "crew"}})
        while True:
            async with session.get("/v1/runs/run_a") as response:
                if response.status == 200:
                    break
            await asyncio.sleep(0.05)
        async with session.get("/v1/runs", headers={"Authorization": f"Bearer {cluster_token}"}) as response:
            assert response.status == 200 and (await response.json())["pagination"]["total"] == 1
        async with session.get("/v1/runs/run_a/events") as stream:
            await stream.content.readuntil(b"\n\n")
            process.send_signal(signal.SIGTERM)
            assert await stream.content.read() == b""  # The stream ends cleanly.
        out, stderr = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, stderr
    lines = [json.loads(line) for line in out.decode().splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    assert {"POST", "PUT", "GET"} == {line["method"] for line in requests}
    assert all(line["request_id"] for line in requests)
    # Once a minute.
    times = [line["event"] for line in lines].count("shared_rate_limit_away")
    assert 1 <= times <= 1 + (time.monotonic() - started) // 60
    assert f"kubernetes:system:serviceaccount:{kube.namespace}:ci" in {line["key"] for line in requests}
    output = out.decode() + stderr.decode()
    signed = ticket["upload_url"].split("token=")[1]
    for secret in (admin_key.text, admin_key.hash, cluster_token, signed, "octopus", "swordfish", KEY):
        assert secret not in output
