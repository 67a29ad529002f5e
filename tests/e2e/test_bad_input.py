"""What goes wrong is said: the right status, a stable reason, a message that names the next step."""

import secrets

import pytest

from tests.e2e.conftest import archive, upload
from tests.e2e.yard import eventually

GOOD = {"main.py": "def kickoff(inputs):\n    return inputs\n"}


async def ready_reason(team, reason: str) -> dict:
    return await eventually(team.ready, lambda seen: seen["reason"] == reason, 60)


async def test_a_repository_that_is_not_there(team):
    team.url = team.url.replace(team.project, "nowhere")
    await team.follow()
    seen = await ready_reason(team, "GitNotFound")
    assert seen["status"] == "False" and "spec.source.git.url" in seen["message"]


async def test_no_such_branch(team):
    team.repository.commit(GOOD, "Begin")
    await team.follow("release")
    seen = await ready_reason(team, "BranchNotFound")
    assert "release" in seen["message"] and "main" in seen["message"]


@pytest.mark.parametrize(
    ("files", "reason", "words"),
    [
        ({"crew.toml": "[deployment\n"}, "ConfigInvalid", ["crew.toml"]),
        (
            {"crew.toml": '[deployment]\nentrypiont = "main:kickoff"\n'},
            "ConfigInvalid",
            ["entrypiont", "entrypoint"],
        ),
        ({"crew.toml": '[deployment]\npython = "2.7"\n'}, "ConfigInvalid", ["2.7", "3.11"]),
        (
            {"crew.toml": '[deployment]\nentrypoint = "main:start"\n'},
            "EntrypointNotFound",
            ["start", "kickoff"],
        ),
        ({"crew.toml": '[deployment]\nentrypoint = "crew:kickoff"\n'}, "EntrypointNotFound", ["crew.py"]),
        (
            {"requirements.txt": "crewyard-no-such-package==9.9\n"},
            "DependencyResolution",
            ["crewyard-no-such-package"],
        ),
    ],
)
async def test_a_deployment_that_cannot_be_built(yard, team, files, reason, words):
    sha = team.repository.commit({**GOOD, **files}, "Break it")
    await team.follow()
    shown = await team.ended(sha)
    assert shown["status"]["phase"] == "Failed"
    error = shown["status"]["error"]
    assert error["reason"] == reason
    whole = " ".join(str(value) for value in error.values())
    assert [word for word in words if word not in whole] == []

    identifier = shown["metadata"]["name"].replace("-", "_", 1)
    seen = await eventually(
        lambda: yard.get(f"/v1/deployments/{identifier}"), lambda found: found["status"] == "failed", 10
    )
    assert seen["error"]["reason"] == reason
    assert seen["message"] == "Break it" and seen["git_sha"] == sha

    refused = await yard.call("POST", "/v1/runs", {"deployment": identifier})
    assert (refused.status, refused.body["error"]["code"]) == (409, "conflict")
    idle = await yard.call("POST", "/v1/runs", {"deployment": team.project})
    assert (idle.status, idle.body["error"]["code"]) == (409, "conflict")

    run = f"run-{secrets.token_hex(6)}"
    await yard.apply("Run", run, {"deployment": shown["metadata"]["name"]}, "create")
    await yard.kubectl("wait", f"crun/{run}", "--for=condition=Complete", "--timeout=30s")
    assert (await yard.object("runs", run))["status"]["error"]["reason"] == "DeploymentFailed"
    events = await yard.events(f"run_{run[4:]}")
    assert [message.event for message in events] == ["run.failed"]
    assert events[0].data["error"]["reason"] == "DeploymentFailed"


async def test_a_failed_build_leaves_the_active_one_active(yard, crew):
    broken = await upload(yard, crew.project, archive({"main.py": b"def kickoff(:\n"}))
    made = await yard.post(
        "/v1/deployments", {"project": crew.project, "build_context_url": broken, "message": "Oops"}
    )
    done = await eventually(
        lambda: yard.get(f"/v1/deployments/{made['id']}"), lambda seen: seen["status"] == "failed", 60
    )
    assert done["error"]["reason"] == "EntrypointNotFound" and "main.py" in done["error"]["message"]
    assert (await yard.get(f"/v1/deployments/{crew.deployment}"))["status"] == "active"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "deployment"),
        ({"deployment": "dep_none"}, 404, "deployment"),
        ({"deployment": "no-such-project"}, 404, "deployment"),
        ({"deployment": "dep_none", "input": [1]}, 400, "input"),
        ({"deployment": "dep_none", "input": "x"}, 400, "input"),
        ({"deployment": "dep_none", "timeout": "soon"}, 400, "timeout"),
        ({"deployment": "dep_none", "entrypoint": "kickoff"}, 400, "entrypoint"),
        ({"deployment": "dep_none", "inputs": {}}, 400, "inputs"),
    ],
)
async def test_a_run_that_is_asked_for_wrongly(yard, body, status, field):
    answer = await yard.call("POST", "/v1/runs", body)
    assert answer.status == status
    assert answer.body["error"]["code"] == ("not_found" if status == 404 else "invalid_request")
    assert answer.body["error"]["details"].get("field") == field


async def test_kubectl_is_refused_too(yard):
    said = await yard.apply("Run", "run-wrong", {"project": "x", "input": [1]}, "create", check=False)
    assert "spec.input" in said and "must be of type object" in said


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"deployment": "dep-none"}, "DeploymentNotFound"),
        ({"project": "no-such-project"}, "NoActiveDeployment"),
    ],
)
async def test_a_run_of_nothing(yard, spec, reason):
    name = f"run-{secrets.token_hex(6)}"
    await yard.apply("Run", name, spec, "create")
    await yard.kubectl("wait", f"crun/{name}", "--for=condition=Complete", "--timeout=30s")
    shown = await yard.object("runs", name)
    assert (shown["status"]["phase"], shown["status"]["error"]["reason"]) == ("Failed", reason)
    seen = await eventually(
        lambda: yard.get(f"/v1/runs/run_{name[4:]}"), lambda found: found["status"] == "failed", 10
    )
    assert seen["error"]["reason"] == reason


@pytest.mark.parametrize(
    ("entrypoint", "reason", "words"),
    [
        ("raises", "CrewError", ["ValueError", "the tide is out"]),
        ("exits", "CrewError", ["3"]),
        ("leaves", "CrewError", ["no more"]),
        ("killed", "CrewError", ["SIGKILL"]),
        ("hungry", "OOMKilled", ["memory"]),
        ("missing", "EntrypointNotFound", ["missing"]),
    ],
)
async def test_a_crew_that_ends_badly(yard, crew, entrypoint, reason, words):
    run = await crew.run(entrypoint)
    assert run["status"] == "failed"
    assert run["error"]["reason"] == reason
    assert [word for word in words if word not in run["error"]["message"]] == []
    last = (await yard.events(run["id"]))[-1]
    assert (last.event, last.data["error"]["reason"]) == ("run.failed", reason)
    shown = await yard.object("runs", run["id"].replace("_", "-", 1))
    assert shown["status"]["error"] == run["error"]
