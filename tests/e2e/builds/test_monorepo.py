"""A crew in a directory of a repository: its workspace's lock, a project beside it, a submodule, Git LFS."""

import pytest

from tests.e2e.conftest import BuiltCrew
from tests.testbed.public_index import with_public_index

pytestmark = pytest.mark.nightly

SYSTEM = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
LOCK = with_public_index("""\
version = 1
requires-python = ">=3.11"

[[package]]
name = "crew"
version = "1"
source = { virtual = "services/crew" }
dependencies = [{ name = "harbour-charts" }, { name = "idna" }]

[[package]]
name = "harbour-charts"
version = "1"
source = { editable = "libs/charts" }

[[package]]
name = "idna"
version = "3.10"
source = { registry = "https://public-index.example/simple" }
wheels = [{ url = "https://files.public-index.example/idna-3.10-py3-none-any.whl", \
hash = "sha256:946d195a0d259cbba61165e88e65941f16e9b36ea6ddb97f00452bae8b1287d3" }]
""")
FILES = {
    "pyproject.toml": '[tool.uv.workspace]\nmembers = ["services/*", "libs/*"]\n',
    "uv.lock": LOCK,
    "services/crew/pyproject.toml": '[project]\nname = "crew"\nversion = "1"\n'
    'dependencies = ["harbour-charts", "idna>=3"]\n[tool.uv.sources]\nharbour-charts = {workspace = true}\n',
    "services/crew/main.py": "import charts, idna\nfrom tools import look\n\n\ndef kickoff(inputs):\n"
    "    return [charts.NAME, idna.__version__, look.NAME, len(open('table.bin').read())]\n",
    ".gitmodules": '[submodule "tools"]\n\tpath = services/crew/tools\n\turl = ../{}.git\n',
    "libs/charts/pyproject.toml": f'{SYSTEM}[project]\nname = "harbour-charts"\nversion = "1"\n',
    "libs/charts/charts.py": 'NAME = "of the repository"\n',
}


async def test_a_member_of_a_workspace_is_built_from_its_commit(git_project, git_server):
    """Slow: two builds, each with a dependency image, and two runs."""
    tools = f"{git_project.project}-tools"
    submodules = {
        "services/crew/tools": git_server.create(tools).commit({"look.py": "NAME = 'tool'\n"}, "one")
    }
    files = {**FILES, "services/crew/table.bin": git_server.pointer(b"x" * 300_000)}
    files[".gitmodules"] = files[".gitmodules"].format(tools)
    commit = git_project.repository.commit(files, "a workspace", submodules=submodules)
    await git_project.follow(path="services/crew")
    deployment = await git_project.wait_finished(commit)
    name = deployment["metadata"]["name"].replace("-", "_", 1)
    run = await BuiltCrew(git_project.testbed, git_project.project, name).run("main:kickoff")
    assert run["output"] == ["of the repository", "3.10", "tool", 300_000]
    # A project beside the path is part of the source.
    changed = {**files, "libs/charts/charts.py": 'NAME = "changed"\n'}
    commit = git_project.repository.commit(changed, "another chart", submodules=submodules)
    deployment = await git_project.wait_finished(commit)
    name = deployment["metadata"]["name"].replace("-", "_", 1)
    run = await BuiltCrew(git_project.testbed, git_project.project, name).run("main:kickoff")
    assert run["output"] == ["changed", "3.10", "tool", 300_000]
