"""Debian packages and Dockerfile lines of a crew."""

import json

import pytest

from plan.errors import PlanError
from plan.keys import dependencies_key
from plan.make import Planned, make_plan
from plan.packages.dockerfile import dockerfile
from plan.packages.pip_log import dependency_failure
from plan.packages.system_packages import instruction_problem

CODE = {"main.py": "def kickoff(inputs): ...\n"}


def planned(**files: str) -> Planned:
    texts = {**CODE, **{name.replace("__", "."): text for name, text in files.items()}}
    return make_plan({path: text.encode() for path, text in texts.items()}, None, ["3.11"])


def test_debian_packages_are_installed_before_python_packages() -> None:
    declaration = planned(
        crew__toml='[build]\npackages = ["ffmpeg", "libpq5"]\n', requirements__txt="six\n"
    ).declaration
    text = dockerfile("base", declaration)
    assert text.index("apt-get install -y --no-install-recommends ffmpeg libpq5") < text.index("pip install")
    assert text.index("apt-get") < text.index("USER 65532")
    without = planned(crew__toml="", requirements__txt="six\n").declaration
    assert "apt" not in dockerfile("base", without)
    keys = {dependencies_key(each, "3.11", "base", "tree") for each in (declaration, without)}
    assert len(keys) == 2
    assert "CAInfo=/workspace/ca.crt" in dockerfile("base", declaration, "/workspace/ca.crt")


def test_lines_of_langgraph_are_executed_in_order() -> None:
    lines = ["# tools", "RUN apt-get update && \\\n  apt-get install -y tree", "ENV TIDE=spring"]
    values = {"graphs": {"a": "./main.py:kickoff"}, "dockerfile_lines": lines}
    text = dockerfile("base", planned(langgraph__json=json.dumps(values)).declaration)
    assert "\nRUN apt-get update && apt-get install -y tree\nENV TIDE=spring\nRUN set -eu;" in text


@pytest.mark.parametrize(
    "name",
    ["ff mpeg", "-y", "x;reboot", "$(id)", "FFmpeg", "ffmpeg=1", "a", "../x", "a\nb", "x" * 101, "-o=x"],
)
def test_only_names_of_debian_packages(name: str) -> None:
    with pytest.raises(PlanError) as raised:
        planned(crew__toml=f"[build]\npackages = [{json.dumps(name)}]\n")
    assert raised.value.reason == "ConfigInvalid"
    assert "which is not the name of a Debian package" in raised.value.message


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("FROM alpine", "has FROM"),
        ("USER daemon", "has USER"),
        ("copy . /x", "has copy"),
        ("ADD https://x /y", "has ADD"),
        ("COPY --from=x / /", "has COPY"),
        ("RUN --mount=type=secret,id=x cat", "options and here-documents"),
        ("RUN <<EOF\nid\nEOF", "options and here-documents"),
        ("RUN true\nUSER 0", "has USER"),
        ("RUN true \\\n && true", None),
        ("ENV A=1", None),
    ],
)
def test_instructions_that_would_change_the_build_are_refused(line: str, part: str | None) -> None:
    problem = instruction_problem([line])
    assert problem is None if part is None else problem is not None and part in problem


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (
            "E: Unable to locate package ffmpegg\nerror building image",
            "the Debian package ffmpegg does not exist",
        ),
        ("E: Package 'x-y' has no installation candidate\n", "the Debian package x-y does not exist"),
        ("the base image has no apt-get\n", "the base image is not of Debian, so it can install no packages"),
        ("E: Failed to fetch http://x/y  503\n", "the package index could not be reached"),
    ],
)
def test_failures_of_apt(log: str, message: str) -> None:
    assert dependency_failure(log).message == message
