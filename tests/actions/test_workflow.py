"""The actions in workflows: run by act, and checked by actionlint.

Both tools come from PATH or from the directory CREWYARD_TOOLS.
"""

import subprocess

import pytest
import yaml

from tests.actions.acting import WORKFLOWS, tool
from tests.actions.runner import ROOT
from tests.actions.service import KEY
from tests.actions.test_deploy import members

LINTED = sorted(
    [
        *WORKFLOWS.glob("*.yml"),
        *(ROOT / "examples/workflows").glob("*.yml"),
        *(ROOT / ".github/workflows").glob("*.yml"),
    ]
)


async def test_a_workflow_deploys_and_runs(act, service):
    service.events = [("run.started", {"deployment_id": "dep_x"}), ("log", {"message": "::error::crew"})]
    service.events += [("run.completed", {"duration_ms": 1})]
    service.end["output"] = {"greeting": "two\nlines"}
    service.files = {"greeting.txt": b"hello from the harbour"}
    code, log = await act.run("both.yml")
    assert code == 0, log
    assert service.deployed["message"] == "Say 'hi' $(id)"
    assert service.started["input"] == {"name": '$(id) `id`; \'"quoted"'}
    assert set(members(service.uploads["upl_0"])) == {"crew.toml", "main.py"}
    assert "status=active url=***/console/#/deployments/dep_" in log
    assert 'output={"greeting": "two\\nlines"}' in log and "hello from the harbour" in log
    assert KEY not in log


async def test_a_failed_deployment_fails_the_job(act, service):
    service.build = {"status": "failed", "error": {"reason": "BuildFailed", "message": "out of luck"}}
    code, log = await act.run("failing.yml")
    assert code == 1, log
    assert "out of luck" in log and "status=failed" in log


@pytest.mark.parametrize("workflow", LINTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_workflows_pass_actionlint(workflow):
    parsed = subprocess.run(
        [tool("actionlint"), "-shellcheck=", "-pyflakes=", str(workflow)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert parsed.returncode == 0, parsed.stdout


@pytest.mark.parametrize("action", ["deploy", "run"])
def test_inputs_reach_the_program_only_by_environment(action):
    parsed = yaml.safe_load((ROOT / "actions" / action / "action.yml").read_text())
    (step,) = parsed["runs"]["steps"]
    assert "${{" not in step["run"]
    expected = {
        f"CREWYARD_INPUT_{name.upper().replace('-', '_')}": f"${{{{ inputs.{name} }}}}"
        for name in parsed["inputs"]
    }
    assert step["env"] == expected
    readme = (ROOT / "actions" / action / "README.md").read_text()
    # The README documents every input and output.
    for name in [*parsed["inputs"], *parsed["outputs"]]:
        assert f"`{name}`" in readme, name
    for name, output in parsed["outputs"].items():
        assert output["value"] == f"${{{{ steps.{action}.outputs.{name} }}}}"
