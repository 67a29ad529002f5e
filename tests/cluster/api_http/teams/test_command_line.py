"""A project of a team's namespace is created, shown and run by the command line."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from crds.kinds import PROJECT, RUN
from tests.cluster.api_http.teams.test_teams import deploy, settings

__all__ = ["settings"]

CLIENT = Path(__file__).parents[4] / "client"


async def only_run(kube):
    """Return the spec of the only Run of a namespace."""
    [manifest] = (await kube.list(RUN)).items
    return manifest["spec"]


@pytest.fixture
def command(testbed, tmp_path):
    """Run the command line; return its output."""
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(CLIENT),
        "CREWYARD_URL": str(testbed.client.make_url("")).rstrip("/"),
        "CREWYARD_API_KEY": testbed.admin,
    }

    async def run(*arguments):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "crewyard.cli.main", *arguments,
            cwd=tmp_path, env=variables, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await asyncio.wait_for(process.communicate(), 120)
        return process.returncode, output.decode(), errors.decode()

    return run


async def test_command_line_uses_a_teams_project(testbed, team, command):
    """Slow: eight processes of the command line."""
    code, output, errors = await command("projects", "create", "theirs", "--namespace", team.namespace)
    assert code == 0, errors
    assert ["NAMESPACE", team.namespace] in [line.split() for line in output.splitlines()]
    assert await team.get(PROJECT, "theirs") and await testbed.kube.get(PROJECT, "theirs") is None
    await deploy(testbed, team, "theirs")
    _, output, _ = await command("projects", "show", "theirs")
    lines = [line.split() for line in output.splitlines()]
    assert ["NAMESPACE", team.namespace] in lines and ["ACTIVE", "dep_theirs"] in lines
    assert ["REQUIREMENTS", "-"] in lines and ["EGRESS", "-"] in lines
    added = ("--requirement", "lxml", "--requirement", "attrs>=20")
    code, _, errors = await command("projects", "set", "theirs", *added)
    assert code == 0, errors
    _, output, _ = await command("projects", "show", "theirs")
    assert ["REQUIREMENTS", "lxml,", "attrs>=20"] in [line.split() for line in output.splitlines()]
    code, _, errors = await command("run", "theirs", "--no-wait", "--input", '{"topic": "ants"}')
    assert code == 0, errors
    spec = await only_run(team)
    assert (spec["project"], spec["input"]) == ("theirs", {"topic": "ants"})
    assert (await testbed.kube.list(RUN)).items == []
    _, output, _ = await command("runs", "list", "--project", "theirs")
    assert "dep_theirs" in output


async def test_namespace_that_is_not_served_is_refused_with_the_next_step(testbed, command):
    code, _, errors = await command("projects", "create", "theirs", "--namespace", "kube-system")
    assert code != 0 and "ask the operator to add it to CREWYARD_NAMESPACES" in errors
