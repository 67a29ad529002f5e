"""What is refused before anything runs, and inputs and outputs at their limits."""

import hashlib
import json
import secrets

import pytest

KIB = 1024


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "deployment"),
        ({"deployment": "dep_none"}, 404, "deployment"),
        ({"deployment": "no-such-project"}, 404, "deployment"),
        ({"deployment": "dep_none", "input": [1]}, 400, "input"),
        ({"deployment": "dep_none", "input": "x"}, 400, "input"),
        ({"deployment": "dep_none", "timeout": "soon"}, 400, "timeout"),
        ({"deployment": "dep_none", "entrypoint": "kick off"}, 400, "entrypoint"),
        ({"deployment": "dep_none", "inputs": {}}, 400, "inputs"),
    ],
)
async def test_invalid_run_request(testbed, body, status, field):
    answer = await testbed.call("POST", "/v1/runs", body)
    assert answer.status == status
    assert answer.body["error"]["code"] == ("not_found" if status == 404 else "invalid_request")
    assert answer.body["error"]["details"].get("field") == field


async def test_invalid_run_by_kubectl_is_refused(testbed):
    output = await testbed.apply("Run", "run-wrong", {"project": "x", "input": [1]}, "create", check=False)
    assert "spec.input" in output and "must be of type object" in output


@pytest.mark.parametrize("size", [10 * KIB, 100 * KIB, 1000 * KIB])
async def test_input_arrives_unchanged(testbed, crew, size):
    sent = {"text": "x" * (size - KIB) + "äöü", "number": 2**60 + 1, "list": [1.5, None, True]}
    text = json.dumps(sent, sort_keys=True, separators=(",", ":"))
    run = await crew.run("values:measured", input=sent)
    assert run["status"] == "succeeded", run.get("error")
    assert run["output"] == {"sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text)}
    assert run["input"] == sent
    spec = (await testbed.object("runs", run["id"].replace("_", "-", 1)))["spec"]
    assert ("inputRef" in spec) == (size > 16 * KIB)
    assert ("input" in spec) == (size <= 16 * KIB)


async def test_input_above_the_limit_is_refused(testbed, crew):
    body = {"deployment": crew.deployment, "input": {"text": "x" * (1024 * KIB)}}
    answer = await testbed.call("POST", "/v1/runs", body)
    assert (answer.status, answer.body["error"]["code"]) == (413, "payload_too_large")
    assert answer.body["error"]["details"]["field"] == "input"


async def test_large_output_becomes_an_artifact(testbed, crew):
    small = await crew.run("values:large", input={"bytes": 30 * KIB})
    assert (small["status"], len(small["output"]["text"])) == ("succeeded", 30 * KIB)
    run = await crew.run("values:large", input={"bytes": 100 * KIB})
    assert (run["status"], run["output"]) == ("succeeded", None)
    answer = await testbed.call("GET", f"/v1/runs/{run['id']}/artifacts/output.json")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.body == {"text": "x" * (100 * KIB)}


async def test_missing_input(testbed, crew):
    name = f"run-{secrets.token_hex(6)}"
    reference = {"sha256": "0" * 64, "size": 20 * KIB}
    await testbed.apply("Run", name, {"project": crew.project, "inputRef": reference}, "create")
    run = await crew.wait_finished(name.replace("-", "_", 1))
    assert (run["status"], run["error"]["reason"]) == ("failed", "InputTooLarge")
    assert "spec.inputRef" in run["error"]["message"]


async def test_kubectl_input_at_and_above_the_limit(testbed, crew):
    """One byte decides; above it the Run fails and its crew is never started."""
    ends = {}
    for size in (256 * KIB, 256 * KIB + 1):
        inputs = {"text": "x" * (size - len('{"text":""}'))}
        name = f"run-{secrets.token_hex(6)}"
        spec = {"project": crew.project, "entrypoint": "values:measured", "input": inputs}
        output = await testbed.apply("Run", name, spec, "create")
        assert f"{name} created" in output
        ends[size] = await crew.wait_finished(name.replace("-", "_", 1))
    fits, above = ends.values()
    assert (fits["status"], fits["output"]["bytes"]) == ("succeeded", 256 * KIB), fits.get("error")
    assert (above["status"], above["error"]["reason"]) == ("failed", "InputTooLarge")
    assert "spec.input is larger than 256 KiB" in above["error"]["message"]
    assert above["started_at"] is None
    events = [message.event for message in await testbed.events(above["id"])]
    assert events == ["run.failed"]


async def test_input_that_kubernetes_refuses_creates_no_run(testbed, crew):
    name = f"run-{secrets.token_hex(6)}"
    spec = {"project": crew.project, "input": {"text": "x" * (2048 * KIB)}}
    output = await testbed.apply("Run", name, spec, "create", check=False)
    # In the words of the apiserver or of etcd, whichever notices first.
    assert "too large" in output or "larger than max" in output
    assert (await testbed.call("GET", f"/v1/runs/{name.replace('-', '_', 1)}")).status == 404
