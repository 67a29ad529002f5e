"""Packages that a Project adds to what the source declares."""

import pytest

from plan.errors import PlanError
from plan.keys import dependencies_key
from plan.make import Planned, make_plan
from plan.packages.dockerfile import dockerfile

MAIN = {"main.py": "def kickoff(inputs): ...\n"}
PROJECT = "[project]\nname = 'tides'\nversion = '1'\ndependencies = ['rich']\n"
LOCK = """
requires-python = ">=3.11"
[[package]]
name = "tides"
source = { virtual = "." }
dependencies = [{ name = "rich" }]
[[package]]
name = "rich"
version = "14.0.0"
source = { registry = "https://public-index.example/simple" }
sdist = { url = "https://public-index.example/rich.tar.gz", hash = "sha256:65fd46fe" }
"""
REDIRECT = "[tool.uv.sources]\nshared = { path = 'libs/shared' }\n"


def planned(files: dict[str, str], *added: str, private_index: bool = False) -> Planned:
    sources = {path: text.encode() for path, text in {**MAIN, **files}.items()}
    return make_plan(sources, None, ["3.11"], private_index, requirements=added)


def test_an_added_package_that_needs_git_is_noted() -> None:
    *_, note = planned({}, "x @ git+https://git.example.com/r").declaration.notes
    assert note.startswith("from a git repository: x;")


def test_they_are_installed_after_the_others_with_what_they_need() -> None:
    declaration = planned({"requirements.txt": "rich\n"}, "lxml>=5", "beautifulsoup4").declaration
    assert declaration.files() == {"requirements.txt": b"rich\n", "added.txt": b"lxml>=5\nbeautifulsoup4\n"}
    assert declaration.notes == ("spec.build.requirements of the Project adds: lxml>=5, beautifulsoup4",)
    text = dockerfile("base", declaration)
    assert (
        "install -r /workspace/declared/requirements.txt \\\n    && install -r /workspace/declared/added.txt"
        in text
    )


def test_a_lock_stays_complete_and_keeps_its_hashes() -> None:
    declaration = planned({"pyproject.toml": PROJECT, "uv.lock": LOCK}, "lxml").declaration
    assert declaration.locked and declaration.hashed
    lines = dockerfile("base", declaration).splitlines()
    first = next(line for line in lines if "requirements.txt" in line)
    assert "--require-hashes --no-deps" in first
    assert lines[lines.index(first) + 1].strip() == "&& install -r /workspace/declared/added.txt"


def test_a_source_that_declares_nothing_gets_them_and_the_framework() -> None:
    found = planned({}, "langgraph")
    assert found.plan.framework == "langgraph" and not found.declaration.empty
    assert "added.txt" in dockerfile("base", found.declaration)


def test_constraints_of_the_source_apply() -> None:
    files = {"requirements.txt": "rich\n-c c.txt\n", "c.txt": "lxml<6\n"}
    text = dockerfile("base", planned(files, "lxml").declaration)
    assert "install -r /workspace/declared/added.txt -c /workspace/declared/constraints.txt" in text


def test_they_are_part_of_the_key() -> None:
    keys = {
        dependencies_key(planned(MAIN, *added).declaration, "3.11", "base", "t")
        for added in ((), ("lxml",), ("lxml>=5",))
    }
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("files", "line", "message"),
    [
        ({}, "lxml is fine", "has 'lxml is fine', which is not a package"),
        ({}, "x @ file:///etc", "has 'x @ file:///etc', which is not a package"),
        ({"pyproject.toml": PROJECT}, "Tides", "has Tides, which is a project of the repository"),
        (
            {"pyproject.toml": PROJECT + REDIRECT},
            "shared",
            "has shared, which is a project of the repository",
        ),
    ],
)
def test_what_is_no_package_of_an_index_is_refused(files: dict[str, str], line: str, message: str) -> None:
    with pytest.raises(PlanError) as raised:
        planned(files, "lxml", line)
    assert raised.value.reason == "ConfigInvalid"
    assert raised.value.message == f"spec.build.requirements of the Project {message}"


def test_a_private_index_allows_wheels_only() -> None:
    with pytest.raises(PlanError) as raised:
        planned({}, "lxml @ git+https://git.example.com/lxml", private_index=True)
    assert raised.value.reason == "DependencyResolution"
    assert planned({}, "lxml", private_index=True).declaration.added == ("lxml",)
