"""The command line as people sit before it: at a terminal, interrupted, narrow, without colours, into a pipe.

Also as a step of a workflow has it, where what a crew prints must be no command.
"""

import asyncio
import subprocess
from collections.abc import Callable

import pytest

from tests.e2e.command_line.terminal import COMMAND, PseudoTerminal, environment
from tests.e2e.slow_source import slow_source

Open = Callable[..., PseudoTerminal]
CREW = """import time


def kickoff():
    print("begin", flush=True)
    time.sleep(1)
    return "done"
"""


@pytest.fixture
def terminal(tmp_path):
    opened: list[PseudoTerminal] = []

    def open_one(*arguments: str, **more) -> PseudoTerminal:
        opened.append(PseudoTerminal(tmp_path, *arguments, **more))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def piped(tmp_path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """What a line of shell prints, in which `crewyard` is the program."""
    shell = f'crewyard() {{ {" ".join(COMMAND)} "$@"; }}\n{line}'
    variables = environment(tmp_path, **more)
    return subprocess.run(
        ["bash", "-c", shell], env=variables, capture_output=True, text=True, timeout=540, check=False
    )


async def test_interrupted_run_continues_and_can_be_stopped(crew, terminal):
    def sit() -> str:
        first = terminal("run", crew.deployment, "--entrypoint", "main:sleeps")
        first.expect("asleep")
        first.press("\x03")
        assert first.finish() == 130
        [run] = {word for word in first.text.split() if word.startswith("run_")}
        assert f"{run} is still running. Follow it: crewyard logs -f {run}" in first.text
        assert f"Stop it: crewyard runs cancel {run}" in first.text
        assert "Traceback" not in first.text

        second = terminal("logs", "-f", run)
        second.expect("asleep")
        second.press("\x03")
        assert second.finish() == 130 and f"{run} is still running" in second.text

        third = terminal("runs", "cancel", run)
        assert third.finish() == 0, third.text
        return run

    run = await asyncio.to_thread(sit)
    assert (await crew.wait_finished(run))["status"] == "canceled"


async def test_run_canceled_elsewhere_has_its_own_exit_code(crew, terminal):
    def sit() -> PseudoTerminal:
        followed = terminal("run", crew.deployment, "--entrypoint", "main:sleeps")
        followed.expect("asleep")
        [run] = {word for word in followed.text.split() if word.startswith("run_")}
        assert terminal("runs", "cancel", run).finish() == 0
        assert followed.finish() == 4, followed.text
        return followed

    assert "■ canceled after" in (await asyncio.to_thread(sit)).text


@pytest.mark.nightly
async def test_interrupted_build_continues(testbed, upload_projects, terminal, tmp_path):
    upload_project = await upload_projects()
    # One build at a time: the interrupted one waits behind another and cannot end before the key press.
    blocking = await upload_project.deploy(slow_source(600))
    (tmp_path / "crew").mkdir()
    (tmp_path / "crew" / "main.py").write_text(CREW)

    def sit() -> str:
        first = terminal("deploy", str(tmp_path / "crew"), "-p", upload_project.project)
        first.expect("dep_")
        first.press("\x03")
        assert first.finish() == 130, first.text
        assert "Traceback" not in first.text
        return next(word for word in first.text.split() if word.startswith("dep_"))

    deployment = await asyncio.to_thread(sit)
    await testbed.kubectl("delete", "cdep", blocking.replace("_", "-", 1), "--wait=false")
    assert (await upload_project.wait_finished(deployment))["status"] == "active"


@pytest.mark.nightly
async def test_resized_narrow_terminal_shows_everything(upload_projects, terminal, tmp_path):
    upload_project = await upload_projects()
    (tmp_path / "crew").mkdir()
    (tmp_path / "crew" / "main.py").write_text(CREW)

    def sit() -> None:
        deployed = terminal("deploy", str(tmp_path / "crew"), "-p", upload_project.project, columns=40)
        assert deployed.finish() == 0, deployed.text
        assert f"Run it: crewyard run {upload_project.project}" in deployed.text and deployed.colours
        # The bar goes when it is done, and the line it was on is free again.
        assert deployed.raw.count("\x1b[?25l") == deployed.raw.count("\x1b[?25h")

        run = terminal("run", upload_project.project, columns=40)
        run.expect("begin")
        run.resize(20)
        run.resize(200)
        assert run.finish() == 0, run.text
        assert "■ completed after" in run.text and run.text.rstrip().endswith("done")

        listed = terminal("runs", "list", "-p", upload_project.project, columns=40)
        assert listed.finish() == 0
        lines = listed.text.rstrip().splitlines()
        # No id is cut: the terminal breaks the line, not the program.
        assert len(lines) == 2 and lines[1].startswith("run_") and len(lines[1]) > 40

    await asyncio.to_thread(sit)


@pytest.mark.parametrize(
    ("more", "colours", "sequences"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "GITHUB_ACTIONS": "true"}, False, False),
    ],
)
async def test_color_settings(crew, terminal, more, colours, sequences):
    def sit() -> PseudoTerminal:
        shown = terminal("deployments", "list", "-p", crew.project, **more)
        assert shown.finish() == 0, shown.text
        return shown

    seen = await asyncio.to_thread(sit)
    assert seen.colours is colours
    assert ("\x1b" in seen.raw) is sequences


async def test_closed_pipe_ends_quietly(crew, tmp_path):
    lines = f'crewyard runs list -p {crew.project} | head -1; echo "${{PIPESTATUS[0]}}"'
    await crew.run("nothing")
    done = await asyncio.to_thread(piped, tmp_path, lines)
    assert done.stdout.splitlines()[0].startswith("ID") and done.stdout.splitlines()[-1] in ("0", "141")
    assert done.stderr == ""

    command = f"crewyard run {crew.deployment} --entrypoint main:lines --input '{{\"count\": 20000}}'"
    done = await asyncio.to_thread(piped, tmp_path, f'{command} | head -3; echo "${{PIPESTATUS[0]}}"')
    assert done.stdout.splitlines()[-1] == "141", done
    assert "Traceback" not in done.stderr and "Broken" not in done.stderr


async def test_crew_output_is_no_workflow_command(crew, tmp_path):
    line = f"crewyard run {crew.deployment} --entrypoint commands:gives 2>&1"
    outside = await asyncio.to_thread(piped, tmp_path, line)
    assert outside.returncode == 1 and "\n::add-mask::everything\n" in outside.stdout
    inside = await asyncio.to_thread(piped, tmp_path, line, GITHUB_ACTIONS="true", CI="true")
    assert inside.returncode == 1
    lines = [line.lstrip() for line in inside.stdout.splitlines()]
    assert [line for line in lines if line.startswith("::") or "##[" in line] == []
    assert "\\x3a:add-mask::everything" in lines and "\\x3a:error::not mine" in lines
    assert "\\x23#[group]x" in lines and "ValueError" in inside.stdout


async def test_crew_output_has_no_terminal_sequences(crew, terminal):
    def sit() -> PseudoTerminal:
        shown = terminal("run", crew.deployment, "--entrypoint", "commands:gives")
        assert shown.finish() == 1, shown.text
        return shown

    seen = await asyncio.to_thread(sit)
    assert "\x1b[31mred" in seen.raw
    assert "\\x1b[2J" in seen.raw and "\x1b[2J" not in seen.raw and "\x1b]0" not in seen.raw
