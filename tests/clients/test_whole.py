"""Each client against an installed service: from archive to artifact, and the examples of its README."""

import contextlib
import json
import os
import re
import secrets
import shutil
from pathlib import Path

import pytest

from crewyard import Client, NotFound
from tests.clients.conftest import ROOT, run
from tests.e2e.upload_project import archive, tree

pytestmark = pytest.mark.nightly

HERE = Path(__file__).parent / "whole"
CREW = ROOT / "tests" / "e2e" / "crew"


@pytest.fixture
def name():
    """Yield a project name; delete the project at the end."""
    if not os.environ.get("CREWYARD_URL"):
        pytest.fail('CREWYARD_URL is not set: run `make up` and `eval "$(make -s env)"` first')
    drawn = f"cli-{secrets.token_hex(4)}"
    yield drawn
    with Client() as client, contextlib.suppress(NotFound):
        client.delete_project(drawn)


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("crew") / "crew.tar.gz"
    path.write_bytes(archive(tree(CREW)))
    return path


def typescript(npm_project, *arguments):
    shutil.copy(HERE / "whole.mjs", npm_project)
    return run("node", "whole.mjs", *arguments, cwd=npm_project)


def go(go_project, *arguments):
    directory = go_project / "whole"
    directory.mkdir(exist_ok=True)
    shutil.copy(HERE / "main.go", directory)
    run("go", "build", "-o", "whole.bin", "./whole", cwd=go_project, seconds=540)
    return run("./whole.bin", *arguments, cwd=go_project)


@pytest.mark.parametrize(("project", "client"), [("npm_project", typescript), ("go_project", go)])
def test_from_an_archive_to_an_artifact(request, name, packed, project, client):
    """Slow: installs the client as users do; a build and a run."""
    output = [
        json.loads(line) for line in client(request.getfixturevalue(project), name, packed).splitlines()
    ]
    lines = [value for kind, value in output if kind == "line"]
    refused = [value for kind, value in output if kind == "refused"]
    results = {kind: value for kind, value in output if kind not in ("line", "refused")}
    assert "hello Ada" in lines
    assert refused == [
        [409, "conflict", "name"],
        [400, "invalid_request", "per_page"],
        [404, "not_found", None],
        [401, "unauthorized", None],
        [409, "conflict", None],
    ]
    assert results.pop("output")["greeting"] == "hello Ada"
    assert sorted(results.pop("artifacts")) == [["data.json", 8], ["nested/report.md", 9]]
    assert results == {
        "log": True,
        "build": "active",
        "deployments": [["active", "By a client"]],
        "in order": True,
        "after the end": 0,
        "artifact": "# Report\n",
        "status": "succeeded",
        "page": [1, True],
    }


@pytest.fixture
def research(name, packed):
    """Return a project with an active deployment."""
    with Client() as client:
        client.create_project(name)
        upload = client.announce_upload(name, packed.stat().st_size)
        client.send_upload(upload, lambda: [packed.read_bytes()])
        deployment = client.create_deployment(name, build_context_url=upload["build_context_url"])
        for _ in client.follow_build_log(deployment["id"]):
            pass
        assert client.get_deployment(deployment["id"])["status"] == "active"
    return name


def example(client: str, project: str) -> str:
    page = (ROOT / "clients" / client / "README.md").read_text()
    [code] = re.findall(r"^```(?:js|go)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert '"research"' in code
    return code.replace('"research"', f'"{project}"')


def test_the_examples_of_the_readmes_work(npm_project, go_project, research):
    """Slow: installs both clients as users do; a build and runs."""
    (npm_project / "example.mjs").write_text(example("typescript", research))
    lines = run("node", "example.mjs", cwd=npm_project).splitlines()
    assert "hello Ada" in lines and set(lines[-1].split()) == {"data.json", "nested/report.md"}

    directory = go_project / "example"
    directory.mkdir(exist_ok=True)
    frame = 'package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"os"\n\n\tcrewyard "crewyard.dev/client"\n)\n'
    stop = "\nfunc check(err error) {\n\tif err != nil {\n\t\tpanic(err)\n\t}\n}\n"
    whole = f"{frame}{stop}\nfunc main() {{\n\tctx := context.Background()\n{example('go', research)}}}\n"
    (directory / "main.go").write_text(whole)
    output = run("go", "run", "./example", cwd=go_project, seconds=540).splitlines()
    assert output[0] == "1 run.started" and output[-1] == "2" and output[-2].endswith(" run.completed")
