"""Thousands of requests generated from the served OpenAPI document: every response is a described one.

`CREWYARD_FUZZ_EXAMPLES`: requests generated per operation, besides those of the document's examples and of
its schemas' limits; `make fuzz` uses more. `CREWYARD_FUZZ_CASES`: minimum of all requests.
"""

import asyncio
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.routing import middleware
from api.v1 import path_parameters
from api.v1.fields import EXAMPLE_PROJECT_NAME
from api.v1.projects.schema import SPEC_EXAMPLE
from crds import names
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.times import format_second

EXAMPLES = os.environ.get("CREWYARD_FUZZ_EXAMPLES", "1")
SEED = os.environ.get("CREWYARD_FUZZ_SEED", "1")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "ignored_auth",
)
MIN_CASES = int(os.environ.get("CREWYARD_FUZZ_CASES", "2000"))


async def example(testbed) -> None:
    """Create the objects that the document's examples name."""
    project, deployment = EXAMPLE_PROJECT_NAME, names.name_of(path_parameters.EXAMPLES["deployments"])
    made = await testbed.kube.create(PROJECT, {"metadata": {"name": project}, "spec": SPEC_EXAMPLE})
    # Owner references as the controller sets them: the objects are deleted with their project.
    owner = {"apiVersion": PROJECT.api_version, "kind": PROJECT.name, "name": project}
    owned = {"ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}]}
    spec = {"project": project, "source": {"archive": {"upload": "upl_ab12"}}}
    await testbed.kube.create(DEPLOYMENT, {"metadata": {"name": deployment, **owned}, "spec": spec})
    await testbed.mark_built(project, deployment)
    run = names.name_of(path_parameters.EXAMPLES["runs"])
    await testbed.kube.create(
        RUN, {"metadata": {"name": run, **owned}, "spec": {"project": project, "input": {}}}
    )
    when = format_second(datetime.now(UTC))
    status = {"project": project, "deployment": deployment, "startTime": when, "completionTime": when}
    await testbed.patch_status(
        RUN, run, phase="Succeeded", durationMs=5, result={"outcome": "succeeded", "durationMs": 5}, **status
    )
    async with asyncio.timeout(180):
        while True:
            found = await testbed.call("GET", f"/v1/runs/{path_parameters.EXAMPLES['runs']}")
            if found[0] == 200 and found[1]["data"]["status"] == "succeeded":
                return
            await asyncio.sleep(0.05)


@pytest.mark.nightly
async def test_generated_requests_get_described_responses(testbed, tmp_path, monkeypatch):
    """Slow: sends thousands of requests."""
    # The generated requests include more than sixty anonymous ones per minute.
    monkeypatch.setattr(middleware, "ANONYMOUS_REQUESTS_PER_MINUTE", 1_000_000)
    await example(testbed)
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        str(testbed.client.make_url("/openapi.json")),
        "--url",
        str(testbed.client.make_url("/")).rstrip("/"),
        "--header",
        f"Authorization: Bearer {testbed.admin}",
        "--checks",
        ",".join(CHECKS),
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        EXAMPLES,
        "--seed",
        SEED,
        "--no-shrink",
        "--continue-on-failure",
        "--request-timeout",
        "60",
        "--warnings",
        "off",
        "--no-color",
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    text = out.decode(errors="replace")
    assert process.returncode == 0, text[-20_000:]
    made = re.search(r"(\d+) generated", text)
    assert made and int(made[1]) >= MIN_CASES, text[-2000:]
    print(f"requests made up: {made[1]}")
