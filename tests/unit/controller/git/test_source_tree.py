"""When a commit outside of the path of a source is another source."""

from collections.abc import Mapping
from pathlib import Path

import pygit2
import pytest

from controller.git.repository import GitProblem
from controller.git.source_tree import source_tree
from tests.testbed.git_server import GitServer, Repository

CREW = {"crews/a/main.py": "1", "crews/a/pyproject.toml": "[project]\nname = 'a'\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return GitServer.repository(tmp_path, "demo")


def tree_id(
    repository: Repository,
    files: Mapping[str, str],
    links: Mapping[str, str] | None = None,
    path: str = "crews/a",
) -> str:
    opened = pygit2.Repository(str(repository.path))
    commit = opened[repository.commit(files, "one", links=links)]
    assert isinstance(commit, pygit2.Commit)
    return source_tree(opened, commit, path)


@pytest.mark.parametrize(
    ("files", "links", "outside_counts"),
    [
        ({}, {}, False),
        ({"pyproject.toml": "[project]\nname = 'root'\n"}, {}, False),
        ({"pyproject.toml": "[tool.uv.workspace]\nmembers = ['crews/*']\n"}, {}, True),
        ({"crews/pyproject.toml": "[tool.uv.workspace]\n"}, {}, True),
        ({"pyproject.toml": "[tool.uv]\nworkspace = {members = ['crews/*']}\n"}, {}, True),
        ({"pyproject.toml": "[tool.uv]\nworkspace.members = ['crews/*']\n"}, {}, True),
        ({"pyproject.toml": "[tool.pixi.workspace]\n[tool.uv]\n# [tool.uv.workspace]\n"}, {}, False),
        ({"pyproject.toml": "[tool]\nuv = 1\n"}, {}, False),
        ({"pyproject.toml": "tool = 1\n"}, {}, False),
        ({"pyproject.toml": "[tool.uv.\n"}, {}, True),
        ({"crews/b/pyproject.toml": "[tool.uv.workspace]\n"}, {}, False),
        ({"crews/a/requirements.txt": "-e ../../libs/x\n"}, {}, True),
        ({"crews/a/deep/langgraph.json": '{"dependencies": ["../x"]}'}, {}, True),
        ({"crews/a/requirements.txt": "-e ..\n"}, {}, True),
        ({"crews/a/requirements.txt": "-e..[pdf]\n"}, {}, True),
        ({"crews/a/requirements.txt": "-r../base.txt\n"}, {}, True),
        ({"crews/a/requirements.txt": "-r base.in\n", "crews/a/base.in": "-e ../libs\n"}, {}, True),
        ({"crews/a/langgraph.json": '{"dependencies": [".."]}'}, {}, True),
        ({"crews/a/langgraph.json": '{"dependencies": ["..\\\\x"]}'}, {}, True),
        ({"crews/a/pyproject.toml": "[tool.uv.sources]\nx = {path = '..'}\n"}, {}, True),
        ({"crews/a/crew.toml": "# tides.. and so on ..."}, {}, False),
        ({"crews/a/prompt.md": "see ../notes"}, {}, False),
        ({}, {"crews/a/x": "../../libs"}, True),
        ({}, {"crews/a/x": ".."}, True),
        ({}, {"crews/a/x": "main.py"}, False),
    ],
)
def test_only_a_source_with_outside_references_depends_on_the_repository(
    repository: Repository, files: dict[str, str], links: dict[str, str], outside_counts: bool
) -> None:
    files = {**CREW, "libs/x.py": "1", **files}
    before = tree_id(repository, files, links)
    assert (tree_id(repository, {**files, "libs/x.py": "2"}, links) == before) == (not outside_counts)
    assert tree_id(repository, {**files, "crews/a/main.py": "2"}, links) != before


def test_source_with_a_submodule_depends_on_the_repository(repository: Repository) -> None:
    def tree(url: str) -> str:
        modules = f'[submodule "x"]\n\tpath = crews/a/x\n\turl = {url}\n'
        sha = repository.commit({**CREW, ".gitmodules": modules}, "one", submodules={"crews/a/x": "1" * 40})
        opened = pygit2.Repository(str(repository.path))
        commit = opened[sha]
        assert isinstance(commit, pygit2.Commit)
        return source_tree(opened, commit, "crews/a")

    assert tree("../gone") != tree("../x")


def test_moved_directory_with_outside_references_is_another_source(repository: Repository) -> None:
    both = {"a/requirements.txt": "../x\n", "b/requirements.txt": "../x\n"}
    assert tree_id(repository, both, path="a") != tree_id(repository, both, path="b")
    plain = {"a/requirements.txt": "six\n", "b/requirements.txt": "six\n"}
    assert tree_id(repository, plain, path="/a/") == tree_id(repository, plain, path="b")


def test_missing_directory_is_reported(repository: Repository) -> None:
    with pytest.raises(GitProblem, match="no directory"):
        tree_id(repository, CREW, path="crews/none")
