"""The actions inside of workflows: run by act on this machine, and judged by actionlint.

Both come from PATH or from the directory CREWYARD_TOOLS.
"""

import asyncio
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.actions.conftest import ROOT
from tests.actions.service import KEY
from tests.actions.test_deploy import members

WORKFLOWS = Path(__file__).parent / "workflows"
JUDGED = sorted(
    [
        *WORKFLOWS.glob("*.yml"),
        *(ROOT / "examples/workflows").glob("*.yml"),
        *(ROOT / ".github").rglob("*.yml"),
    ]
)


def tool(name: str) -> str:
    """Where the tool is; the test is skipped where it is not."""
    path = os.pathsep.join([os.environ.get("CREWYARD_TOOLS", ""), os.environ["PATH"]])
    found = shutil.which(name, path=path)
    if not found:
        pytest.skip(f"there is no {name} on PATH or in CREWYARD_TOOLS")
    return found


@dataclass
class Act:
    """A repository with the actions and a crew, and act to run its workflows."""

    home: Path
    secrets: dict[str, str]

    async def run(self, workflow: str) -> tuple[int, str]:
        """Exit code and log of the workflow."""
        file = self.home / "secrets"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.secrets.items()))
        process = await asyncio.create_subprocess_exec(
            tool("act"),
            "push",
            *("-W", str(WORKFLOWS / workflow), "-P", "ubuntu-latest=-self-hosted"),
            *("--secret-file", str(file), "--artifact-server-path", "", "--cache-server-path", ""),
            cwd=self.home / "repository",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "XDG_CACHE_HOME": str(self.home / "cache"),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        raw, _ = await asyncio.wait_for(process.communicate(), 120)
        return process.returncode or 0, raw.decode()


@pytest.fixture
def act(tmp_path, service) -> Act:
    repository = tmp_path / "repository"
    shutil.copytree(ROOT / "actions", repository / "actions", ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in {
        "main.py": "def kickoff(inputs): ...\n",
        "notes/a": "x",
        "big.csv": "1,2\n",
        "crew.toml": "",
    }.items():
        path = repository / "crew" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [
            "-c",
            "user.name=Somebody",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-q",
            "-m",
            "Say 'hi' $(id)",
        ],
    ):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    return Act(
        tmp_path, {"CREWYARD_URL": service.url, "CREWYARD_API_KEY": KEY, "CREWYARD_PROJECT": "research"}
    )


async def test_a_workflow_deploys_and_runs(act, service):
    service.events = [("run.started", {"deployment_id": "dep_x"}), ("log", {"message": "::error::crew"})]
    service.events += [("run.completed", {"duration_ms": 1})]
    service.end["output"] = {"greeting": "two\nlines"}
    service.files = {"greeting.txt": b"hello from the yard"}
    code, log = await act.run("both.yml")
    assert code == 0, log
    assert service.deployed["message"] == "Say 'hi' $(id)"
    assert service.started["input"] == {"name": '$(id) `id`; \'"quoted"'}
    assert set(members(service.uploads["upl_0"])) == {"crew.toml", "main.py"}
    assert "status=active url=***/v1/deployments/dep_" in log
    assert 'output={"greeting": "two\\nlines"}' in log and "hello from the yard" in log
    assert KEY not in log


async def test_a_failed_deployment_fails_the_job(act, service):
    service.build = {"status": "failed", "error": {"reason": "BuildFailed", "message": "out of luck"}}
    code, log = await act.run("failing.yml")
    assert code == 1, log
    assert "out of luck" in log and "status=failed" in log


@pytest.mark.parametrize("workflow", JUDGED, ids=lambda path: str(path.relative_to(ROOT)))
def test_workflows_are_sound(workflow):
    found = subprocess.run(
        [tool("actionlint"), "-shellcheck=", "-pyflakes=", str(workflow)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("action", ["deploy", "run"])
def test_an_action_s_inputs_reach_its_program_by_environment_only(action):
    import yaml

    found = yaml.safe_load((ROOT / "actions" / action / "action.yml").read_text())
    (step,) = found["runs"]["steps"]
    assert "${{" not in step["run"]
    expected = {
        f"CREWYARD_INPUT_{name.upper().replace('-', '_')}": f"${{{{ inputs.{name} }}}}"
        for name in found["inputs"]
    }
    assert step["env"] == expected
    program = (ROOT / "actions" / action / f"{action}.py").read_text()
    readme = (ROOT / "actions" / action / "README.md").read_text()
    page = (ROOT / "docs/actions.md").read_text()
    for name in [*found["inputs"], *found["outputs"]]:
        assert f"`{name}`" in readme and f"`{name}`" in page, name
    for name, output in found["outputs"].items():
        assert output["value"] == f"${{{{ steps.{action}.outputs.{name} }}}}"
        assert f'"{name}"' in program
