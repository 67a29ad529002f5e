"""Crews in a directory of a larger repository, from commits of a real git server."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from build.logs import BuildLog
from build.planned_source import PlannedSource, fetch_and_plan
from build.settings import read_settings
from build.workspace import write_workspace
from plan.errors import PlanError
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository
from tests.testbed.public_index import with_public_index

ROOT = "[tool.uv.workspace]\nmembers = ['services/*', 'libs/*']\n"
CREW = """\
[project]
name = 'crew'
dependencies = ['shared', 'six']
[tool.uv.sources]
shared = {workspace = true}
"""
SHARED = "[project]\nname = 'shared'\ndependencies = []\n[build-system]\nrequires = ['hatchling']\n"
LOCK = with_public_index("""\
version = 1
requires-python = ">=3.11"
[[package]]
name = "crew"
version = "1"
source = { virtual = "services/crew" }
dependencies = [{ name = "shared" }, { name = "six" }]
[[package]]
name = "shared"
version = "1"
source = { editable = "libs/shared" }
[[package]]
name = "six"
version = "1.17.0"
source = { registry = "https://public-index.example/simple" }
sdist = { url = "https://files.public-index.example/six-1.17.0.tar.gz", hash = "sha256:ff70335d" }
""")
MONOREPO = {
    "pyproject.toml": ROOT,
    "uv.lock": LOCK,
    "secret.txt": "not for the crew\n",
    "services/crew/pyproject.toml": CREW,
    "services/crew/main.py": "def kickoff(inputs): ...\n",
    "services/other/pyproject.toml": "[project]\nname = 'other'\n",
    "libs/shared/pyproject.toml": SHARED,
    "libs/shared/src/shared/__init__.py": "VALUE = 1\n",
}


class Fetches:
    """Plans commits of one repository with the code of the build pods."""

    def __init__(self, git: GitServer, repository: GitRepository) -> None:
        self.git, self.repository = git, repository

    def settings(self, files: Mapping[str, str], path: str, links: Mapping[str, str] | None = None) -> Any:
        commit = self.repository.commit(files, "one", links=links)
        source = {"git": {"url": self.git.url("demo"), "commit": commit, "path": path}}
        build = {
            "namespace": "crews",
            "project": "demo",
            "deployment": "dep-one",
            "source": source,
            "crew": None,
            "registry": {"prefix": "registry.example.org", "insecure": True},
            "base_images": {"3.11": "library/python:3.11-slim"},
            "network": {"allow": ["127.0.0.0/8"], "deny": []},
        }
        environment = {
            "CREWYARD_INTERNAL_URL": "http://127.0.0.1:9",
            "CREWYARD_TOKEN": "token",
            "CREWYARD_BUILD": json.dumps(build),
        }
        return read_settings(environment)

    def plan(self, files: Mapping[str, str], path: str = "services/crew", **more: Any) -> PlannedSource:
        return fetch_and_plan(self.settings(files, path, **more), BuildLog(out=io.StringIO()))


@pytest.fixture
def fetches(git: GitServer, demo: GitRepository) -> Fetches:
    return Fetches(git, demo)


def test_a_member_finds_its_workspace(fetches: Fetches, tmp_path: Path) -> None:
    planned = fetches.plan(MONOREPO)
    declaration = planned.planned.declaration
    assert declaration.origin == "uv.lock"
    assert declaration.lines == ("six==1.17.0 --hash=sha256:ff70335d",)
    assert declaration.projects == ("libs/shared",)
    # The source itself is what it was: the directory of the path.
    assert sorted(planned.tree) == ["main.py", "pyproject.toml"]

    tmp_path /= "workspace"
    write_workspace(fetches.settings(MONOREPO, "services/crew"), BuildLog(out=io.StringIO()), tmp_path)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {
        "Dockerfile",
        "declared/requirements.txt",
        "declared/pylock.toml",
        "uv",
        "tree/services/crew/main.py",
        "tree/services/crew/pyproject.toml",
        "tree/libs/shared/pyproject.toml",
        "tree/libs/shared/src/shared/__init__.py",
    }
    assert "/workspace/tree/libs/shared" in (tmp_path / "Dockerfile").read_text()


def test_the_dependency_image_covers_what_it_installs(fetches: Fetches) -> None:
    key = fetches.plan(MONOREPO).key
    assert fetches.plan({**MONOREPO, "secret.txt": "changed\n"}).key == key
    assert fetches.plan({**MONOREPO, "libs/shared/src/shared/__init__.py": "VALUE = 2\n"}).key != key
    assert fetches.plan({**MONOREPO, "uv.lock": LOCK.replace("ff70335d", "00")}).key != key


@pytest.mark.parametrize(
    "declared",
    [
        {"services/crew/requirements.txt": "-e ../../libs/shared\n"},
        {"services/crew/requirements.txt": "-r ../../base.txt\n", "base.txt": "../../libs/shared\n"},
        {
            "services/crew/pyproject.toml": CREW.replace(
                "{workspace = true}", "{path = '../../libs/shared'}"
            ),
            "pyproject.toml": "",
        },
        {
            "services/crew/langgraph.json": '{"graphs": {"a": "./main.py:kickoff"}, '
            '"dependencies": [".", "../../libs/shared"]}',
            "services/crew/pyproject.toml": "[project]\nname = 'crew'\n",
            "uv.lock": LOCK.replace('{ name = "shared" }, ', ""),
        },
    ],
)
def test_projects_above_the_path(fetches: Fetches, declared: dict[str, str]) -> None:
    planned = fetches.plan({**MONOREPO, **declared})
    assert planned.planned.declaration.projects == ("libs/shared",)
    assert sorted(planned.outside) == ["libs/shared"]


@pytest.mark.parametrize("target", ["../../../shared", "/libs/shared", "../../secret.txt"])
def test_project_outside_of_the_repository_is_refused(fetches: Fetches, target: str) -> None:
    with pytest.raises(PlanError) as raised:
        fetches.plan({**MONOREPO, "services/crew/requirements.txt": f"-e {target}\n"})
    assert raised.value.reason == "DependencyResolution"


def test_links_inside_the_repository_become_copies(fetches: Fetches) -> None:
    links = {
        "services/crew/shared": "../../libs/shared/src/shared",
        "services/crew/notes.txt": "../../secret.txt",
        "libs/shared/src/shared/more": "../../more",
    }
    tree = fetches.plan({**MONOREPO, "libs/shared/more/a.py": "1"}, links=links).tree
    assert sorted(tree) == [
        "main.py",
        "notes.txt",
        "pyproject.toml",
        "shared/__init__.py",
        "shared/more/a.py",
    ]
    assert tree["notes.txt"] == b"not for the crew\n"


@pytest.mark.parametrize(
    "links",
    [
        {"services/crew/x": "../../.."},
        {"services/crew/x": "../crew"},
        {"services/crew/x": "../.."},
        {"services/crew/x": "/etc"},
        {"services/crew/x": "../../libs/one", "libs/one/x": "../two", "libs/two/x": "../one"},
    ],
)
def test_links_that_leave_the_repository_or_loop_are_left_out(
    fetches: Fetches, links: dict[str, str]
) -> None:
    tree = fetches.plan({**MONOREPO, "libs/one/a": "1", "libs/two/a": "2"}, links=links).tree
    assert sorted(path for path in tree if not path.startswith("x/")) == ["main.py", "pyproject.toml"]
    assert len(tree) < 20
