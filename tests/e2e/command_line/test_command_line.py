"""The command line against the installed service: as a program, and at a terminal."""

import asyncio
import json
import os
import pty
import sys
from pathlib import Path

from crewyard import AsyncClient, Client, NotFound
from tests.e2e.testbed import eventually

CLIENT = Path(__file__).parents[3] / "client"


def environment(tmp_path, **more):
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(CLIENT),
        "HOME": str(tmp_path),
        "CREWYARD_URL": os.environ["CREWYARD_URL"],
        "CREWYARD_API_KEY": os.environ["CREWYARD_API_KEY"],
        **more,
    }


async def crewyard(tmp_path, *arguments, stdin_text="", **more):
    """Exit code, standard output and standard error of the program."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "crewyard.cli.main",
        *arguments,
        env=environment(tmp_path, **more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(900):
        out, err = await process.communicate(stdin_text.encode())
    return process.returncode, out.decode(), err.decode()


def documents(text):
    return [json.loads(line) for line in text.splitlines()]


async def test_init_deploy_run_and_download(upload_projects, tmp_path):
    """Slow: a build and several runs."""
    upload_project = await upload_projects()
    name, crew = upload_project.project, str(tmp_path / "crew")
    assert (await crewyard(tmp_path, "init", crew))[0] == 0
    code, out, err = await crewyard(tmp_path, "deploy", crew, "-p", name, "-m", "A first try", "--json")
    assert code == 0, err
    (deployed,) = documents(out)
    assert (deployed["status"], deployed["message"]) == ("active", "A first try")

    code, out, err = await crewyard(tmp_path, "run", name, "--input", '{"topic": "whales"}', "--json")
    assert code == 0, err
    events = documents(out)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "run.completed"
    run = events[0]["data"]["run_id"]

    code, out, _ = await crewyard(tmp_path, "artifacts", run, "-d", str(tmp_path / "got"))
    assert code == 0
    assert (tmp_path / "got" / "report.md").read_text() == "# whales\n\nThey float.\n"
    assert "thinking about whales" in (await crewyard(tmp_path, "logs", run))[1]
    assert (await crewyard(tmp_path, "runs", "show", run, "--json"))[1].count("\n") == 1
    listed = documents((await crewyard(tmp_path, "--json", "runs", "list", "-p", name))[1])
    assert [found["id"] for found in listed] == [run]

    (tmp_path / "crew" / "main.py").write_text("def kickoff(inputs):\n    raise ValueError('boom')\n")
    code, out, _ = await crewyard(tmp_path, "deploy", crew, "-p", name, "--json")
    assert code == 0
    code, _, err = await crewyard(tmp_path, "run", name)
    assert code == 1
    code, out, _ = await crewyard(tmp_path, "rollback", deployed["id"], "--json")
    assert (code, documents(out)[0]["status"]) == (0, "active")

    (tmp_path / "crew" / "crew.toml").write_text('[deployment]\nentrypoint = "none:none"\n')
    code, _, err = await crewyard(tmp_path, "deploy", crew, "-p", name)
    assert code == 1
    assert "EntrypointNotFound" in err


async def test_egress_is_changed_and_a_refusal_shown(upload_projects, testbed, tmp_path):
    name = (await upload_projects()).project
    wanted = [
        "--egress",
        "models/model",
        "--egress",
        "models/app=model,size=small:8080",
        "--egress",
        "kube-system",
    ]
    assert (await crewyard(tmp_path, "projects", "set", name, *wanted))[0] == 0
    project = await eventually(lambda: testbed.get(f"/v1/projects/{name}"), lambda seen: seen["limited"], 300)
    assert project["limited"]["reason"] == "EgressRefused"
    _, out, _ = await crewyard(tmp_path, "projects", "show", name)
    assert "models/model models/app=model,size=small:8080 kube-system" in out
    assert "run.egress[2] (kube-system/*) is left out" in out
    policy = ("get", "networkpolicy", f"crewyard-egress-{name}", "--ignore-not-found", "-o", "json")
    found = json.loads(await eventually(lambda: testbed.kubectl(*policy), bool, 300))
    assert [rule["to"][0]["podSelector"]["matchLabels"] for rule in found["spec"]["egress"]] == [
        {"app": "model"},
        {"app": "model", "size": "small"},
    ]
    assert (await crewyard(tmp_path, "projects", "set", name, "--no-egress"))[0] == 0
    project = await eventually(
        lambda: testbed.get(f"/v1/projects/{name}"), lambda seen: not seen["limited"], 300
    )
    assert not project["run"].get("egress")
    gone = ("get", "networkpolicy", f"crewyard-egress-{name}", "--ignore-not-found")
    await eventually(lambda: testbed.kubectl(*gone), lambda text: not text, 300)


async def test_variables_are_set_and_not_shown(upload_projects, tmp_path):
    name = (await upload_projects()).project
    (tmp_path / "x.env").write_text("# secrets\nA='canary one'\nexport B=canary-two\n")
    code, out, err = await crewyard(tmp_path, "env", "import", str(tmp_path / "x.env"), "-p", name)
    assert code == 0
    more = await crewyard(tmp_path, "env", "set", "C", "-p", name, stdin_text="canary-three")
    listed = await crewyard(tmp_path, "env", "list", "-p", name, "--json")
    assert [found["name"] for found in documents(listed[1])] == ["A", "B", "C"]
    assert "canary" not in out + err + more[1] + more[2] + listed[1]
    assert (await crewyard(tmp_path, "env", "rm", "A", "-p", name))[0] == 0


async def test_login_stores_key_per_server(testbed, tmp_path):
    bare = {"CREWYARD_URL": "", "CREWYARD_API_KEY": ""}
    url, key = os.environ["CREWYARD_URL"], os.environ["CREWYARD_API_KEY"]
    code, out, err = await crewyard(tmp_path, "login", "--url", url, stdin_text=f"{key}\n", **bare)
    assert code == 0, err
    assert key not in out + err
    file = tmp_path / ".config" / "crewyard" / "config.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert (await crewyard(tmp_path, "projects", "list", **bare))[0] == 0
    elsewhere = await crewyard(tmp_path, "--url", "http://127.0.0.1:9", "projects", "list", **bare)
    assert elsewhere[0] == 2
    assert "no API key" in elsewhere[2]
    wrong = await crewyard(tmp_path, "login", "--url", url, stdin_text="crw_wrong\n", **bare)
    assert wrong[0] == 3
    assert (await crewyard(tmp_path, "projects", "list", **bare))[0] == 0, "a wrong login loses nothing"


async def test_refused_request_prints_the_next_step(tmp_path):
    code, out, err = await crewyard(tmp_path, "run", "no-such-project-at-all")
    assert (code, out) == (3, "")
    assert "field: deployment" in err
    assert "Traceback" not in err
    code, _, err = await crewyard(tmp_path, "projects", "list", CREWYARD_API_KEY="crw_bad")
    assert code == 3
    assert "crewyard login" in err


async def test_colors_only_at_a_terminal(tmp_path):
    plain = (await crewyard(tmp_path, "projects", "list"))[1]
    assert "\x1b[" not in plain
    assert "\x1b[" in await asyncio.to_thread(_at_a_terminal, tmp_path, "projects", "list")


def _at_a_terminal(tmp_path, *arguments):
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "crewyard.cli.main", *arguments]
        os.execve(sys.executable, command, environment(tmp_path, TERM="xterm-256color"))
    text = b""
    with os.fdopen(terminal, "rb", buffering=0) as reading:
        while True:
            try:
                chunk = reading.read(4096)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
    os.waitpid(pid, 0)
    return text.decode()


async def test_sync_and_async_clients_follow_a_run(crew):
    """Slow: its fixture builds a crew."""
    async with AsyncClient() as waiting:
        made = await waiting.start_run(crew.deployment, {})
        events = [event async for event in waiting.follow_run(made["id"])]
        rest = [event async for event in waiting.follow_run(made["id"], after=2)]
    assert rest == events[2:]

    def again():
        with Client() as client:
            return list(client.follow_run(made["id"])), client.list_events(made["id"]).items

    followed, listed = await asyncio.to_thread(again)
    assert followed == events == listed
    async with AsyncClient() as client:
        try:
            await client.get_run("run_none")
        except NotFound as error:
            assert error.request_id
        else:
            raise AssertionError("an unknown run was found")
