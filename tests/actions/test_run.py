"""The action `run`, run as a step."""

import asyncio
import json
import signal

import pytest
import yaml

from tests.actions.runner import ROOT
from tests.actions.service import error
from tests.actions.test_deploy import HOSTILE

BEGIN = ("run.started", {"deployment_id": "dep_x"})
DONE = ("run.completed", {"duration_ms": 1200, "output": {"n": 1}})


async def test_a_run_is_printed_and_its_output_set(runner, service):
    service.events = [
        BEGIN,
        ("log", {"message": "hello", "level": "info"}),
        ("agent.started", {"agent": "writer", "task": "write\nthe report"}),
        ("tool.called", {"agent": "writer", "tool": "search", "input": {"q": "tides"}}),
        ("usage", {"model": "m", "prompt_tokens": 3, "completion_tokens": 4}),
        ("usage", {"model": "m", "prompt_tokens": 30, "completion_tokens": 40}),
        ("greeting", {"name": "harbour"}),
        DONE,
    ]
    service.end["output"] = {"text": "a\nend_of <<EOF\n“b”", "n": [1]}
    done = await runner.run(input='{"topic": "tides"}', timeout="30m")
    assert done.code == 0, done.log
    assert service.started == {"deployment": "research", "input": {"topic": "tides"}, "timeout": "30m"}
    assert done.outputs["status"] == "succeeded"
    assert done.outputs["run-id"].startswith("run_")
    assert json.loads(done.outputs["output"]) == service.end["output"]
    for line in (
        "hello",
        "agent writer: started: write the report",
        'tool search (for writer): called: {"q": "tides"}',
        'greeting {"name": "harbour"}',
        "the run is completed after 1.2 s",
    ):
        assert f"\n{line}\n" in done.log
    assert "m: 33 in, 44 out" in done.summary.replace("\\", "")


async def test_every_event_is_printed_once_despite_faults(runner, service):
    service.events = [BEGIN, *[("log", {"message": f"line {number}"}) for number in range(50)], DONE]
    service.cut_after.extend([0, 7, 20, 3])
    service.faults["POST /v1/runs"].extend(["after", error(429, "queue_full", "full", {"Retry-After": "0"})])
    service.faults["GET /v1/runs/{id}/events"].append("cut")
    done = await runner.run()
    assert done.code == 0, done.log
    assert len(service.created) == 1
    lines = [line for line in done.log.splitlines() if line.startswith("line ")]
    assert lines == [f"line {number}" for number in range(50)]


async def test_a_failed_run_fails_the_step_and_its_artifacts_are_downloaded(runner, service):
    service.events = [BEGIN, ("run.failed", {"duration_ms": 5, "error": {}})]
    error_text = 'Traceback\n  File "main.py", line 3\nValueError: 100% wrong, ::error::x'
    service.end = {
        "status": "failed",
        "duration_ms": 5,
        "error": {"reason": "CrewError", "message": error_text},
    }
    service.files = {"partial/report.txt": b"so far"}
    done = await runner.run(artifacts_directory="out", project="", deployment="dep_ab12")
    assert done.code == 1
    assert service.started["deployment"] == "dep_ab12"
    (line,) = done.errors()
    assert line.startswith("::error title=CrewError::Traceback%0A") and "100%25 wrong" in line
    assert done.outputs["status"] == "failed" and done.outputs["output"] == ""
    assert (runner.workspace / "out/partial/report.txt").read_bytes() == b"so far"


async def test_a_run_that_asks_a_person_fails_the_step_and_is_canceled(runner, service):
    service.events = [BEGIN, ("input.requested", {"request_id": "q1", "prompt": "Publish it?"}), DONE]
    service.silent, service.end = True, {"status": "canceled", "duration_ms": 5}
    done = await runner.run()
    assert done.code == 1
    assert "asks a person 'Publish it?'" in done.errors()[0]
    assert service.canceled.is_set()
    assert done.outputs["status"] == "canceled" and "**canceled**" in done.summary


async def test_a_canceled_run_fails_the_step(runner, service):
    service.events = [BEGIN, ("run.canceled", {"duration_ms": 5})]
    service.end = {"status": "canceled", "duration_ms": 5}
    done = await runner.run()
    assert done.code == 1 and "was canceled" in done.errors()[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_canceled_workflow_cancels_the_run(runner, service, number):
    service.events, service.silent = [BEGIN], True
    process = await runner.start("run", project="research")
    while await process.stdout.readline() != b"the run has started (deployment dep_x)\n":
        pass
    service.faults["POST /v1/runs/{id}/cancel"].append("cut")
    process.send_signal(number)
    process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(service.canceled.wait(), 300)
    done = await runner.done(process)
    assert done.code == 130
    assert not done.errors()
    assert done.outputs["run-id"].startswith("run_")


async def test_the_runner_s_signal_reaches_the_program_through_the_shell(runner, service):
    service.events, service.silent = [BEGIN], True
    action = ROOT / "actions/run"
    script = runner.home / "step.sh"
    script.write_text(yaml.safe_load((action / "action.yml").read_text())["runs"]["steps"][0]["run"])
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)),
        cwd=runner.workspace,
        env={**runner.variables(project="research"), "GITHUB_ACTION_PATH": str(action)},
        stdout=asyncio.subprocess.PIPE,
    )
    while await process.stdout.readline() != b"the run has started (deployment dep_x)\n":
        pass
    process.send_signal(signal.SIGINT)
    await asyncio.wait_for(service.canceled.wait(), 300)
    await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 130


async def test_a_run_without_a_response_yet_is_canceled_too(runner, service):
    requested = asyncio.Event()
    make = service._idempotent

    def slow(*arguments):
        requested.set()
        return make(*arguments)

    service._idempotent = slow
    service.faults["POST /v1/runs"].extend([error(503, "unavailable", "later", {"Retry-After": "60"})])
    process = await runner.start("run", project="research")
    while b"retrying in 60 s" not in await process.stdout.readline():
        pass
    process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(service.canceled.wait(), 300)
    assert (await runner.done(process)).code == 130
    assert requested.is_set() and len(service.created) == 1


async def test_crew_output_is_never_a_command(runner, service):
    service.events = [BEGIN, *[("log", {"message": text}) for text in HOSTILE]]
    service.events += [("agent.started", {"agent": text, "task": text}) for text in HOSTILE]
    service.events += [("artifact", {"name": text, "size": 1}) for text in HOSTILE]
    service.events += [("x\n::error::y", "no object"), DONE]
    service.malformed_events = True
    service.end["output"] = HOSTILE
    done = await runner.run()
    assert done.code == 0, done.log
    assert [command.split("::")[1] for command in done.commands] == ["add-mask"]
    assert set(done.outputs) == {"run-id", "status", "output"}
    assert json.loads(done.outputs["output"]) == HOSTILE


async def test_artifacts_stay_inside_their_directory(runner, service, tmp_path):
    service.events = [BEGIN, DONE]
    (runner.workspace / "out").mkdir()
    (runner.workspace / "out/away").symlink_to(tmp_path)
    (tmp_path / "victim").write_text("mine")
    (runner.workspace / "out/link").symlink_to(tmp_path / "victim")
    (runner.workspace / "out/mine.txt").write_text("mine")
    good = {f"deep/{number}.txt": str(number).encode() for number in range(120)}
    bad = {
        "../up": b"x",
        "/etc/x": b"x",
        "away/file": b"x",
        ".git/config": b"x",
        "a//b": b"x",
        "DEEP/0.txt": b"x",
        "link": b"new",
        "mine.txt": b"x",
        "deep/0.txt/b": b"x",
        "deep": b"x",
    }
    service.files = {**good, "größe %41.txt": b"y", **bad}
    done = await runner.run(artifacts_directory="out")
    assert done.code == 1
    assert len(done.errors()[0].split("%0A")) == len(bad)
    assert "The artifact deep/0.txt/b is not downloaded: the file " in done.errors()[0]
    for name, content in {**good, "größe %41.txt": b"y", "mine.txt": b"mine"}.items():
        assert (runner.workspace / "out" / name).read_bytes() == content
    assert (tmp_path / "victim").read_text() == "mine" and (runner.workspace / "out/link").is_symlink()
    assert not (tmp_path / "file").exists() and not (runner.workspace / "up").exists()
    assert not list((runner.workspace / "out").rglob("*.part"))


async def test_files_are_replaced_on_request_alone(runner, service, tmp_path):
    service.events, service.files = [BEGIN, DONE], {"a.txt": b"new", "link": b"new"}
    (runner.workspace / "out").mkdir()
    (tmp_path / "victim").write_text("mine")
    (runner.workspace / "out/a.txt").write_text("old")
    (runner.workspace / "out/link").symlink_to(tmp_path / "victim")
    refused = await runner.run(artifacts_directory="out")
    assert refused.code == 1 and "artifacts-overwrite" in refused.log
    done = await runner.run(artifacts_directory="out", artifacts_overwrite="true")
    assert done.code == 0, done.log
    for name in service.files:
        assert (runner.workspace / "out" / name).read_bytes() == b"new"
    assert (tmp_path / "victim").read_text() == "mine"


async def test_an_artifact_with_a_wrong_digest_is_fetched_again(runner, service):
    service.events = [BEGIN, DONE]
    service.files, service.overridden_files = (
        {"a": b"right", "b": b"right"},
        {"a": b"wrong", "b": b"right and more"},
    )
    process = await runner.start("run", project="research", artifacts_directory="out")
    async for line in process.stdout:
        if b"/artifacts/a: 5 of 5 bytes" in line:
            service.overridden_files = {}
    done = await runner.done(process)
    assert done.code == 0
    assert (runner.workspace / "out/a").read_bytes() == b"right"
    assert (runner.workspace / "out/b").read_bytes() == b"right"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"input": "{nonsense"}, "line 1, column 2"),
        ({"input": "[1]"}, "JSON object"),
        ({"input": '{"a": NaN}'}, "NaN"),
        ({"input": '{"a": "\\ud800"}'}, "surrogate"),
        ({"timeout": "1d"}, "timeout"),
        ({"artifacts_directory": "taken/out"}, "artifacts-directory"),
        ({"deployment": "dep_a"}, "one of the inputs"),
        ({"project": ""}, "one of the inputs"),
        ({"project": "", "deployment": "dep_../x"}, "deployment"),
    ],
)
async def test_a_wrong_input_is_named(runner, service, inputs, message):
    (runner.workspace / "taken").write_text("a file")
    done = await runner.run(**inputs)
    assert done.code == 1
    assert message in done.errors()[0]
    assert not service.requests


async def test_the_error_message_of_the_service_reaches_the_log(runner):
    done = await runner.run(project="idle")
    assert done.errors() == [
        "::error title=Crewyard::the project idle has no active deployment yet (409 conflict)"
    ]
