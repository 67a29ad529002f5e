"""Debian packages and Dockerfile lines of a crew."""

import json

import pytest

from plan.errors import PlanError
from plan.keys import dependencies_key
from plan.make import Planned, make_plan
from plan.packages.dockerfile import dockerfile
from plan.packages.pip_log import dependency_failure
from plan.packages.system_packages import (
    APT_SETTINGS,
    instruction_problem,
    joined_instructions,
    system_instructions,
)

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
    text = dockerfile("base", declaration, "/workspace/ca.crt")
    assert text.count("apt-get -o Acquire::https::CAInfo=/workspace/ca.crt ") == 2


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
    assert f"has {name[:100]!r}, which is not the name of a Debian package" in raised.value.message


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("FROM alpine", "has FROM; supported are RUN, ENV, ARG, LABEL, WORKDIR, SHELL"),
        ("X" * 30, f"has {'X' * 20}; supported"),
        ("RUN  --mount=type=cache,target=/x true", "options and here-documents"),
        ("RUN --x " + "y" * 60, f"has {'RUN --x ' + 'y' * 52!r}; options"),
        ("\n".join(["RUN true"] * 200), None),
        ("RUN " + "x" * 4092, None),
        ("RUN " + "x" * 4093, "has more than 200 lines, or one above 4096 characters"),
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


def test_at_most_200_lines_are_executed() -> None:
    assert instruction_problem(["RUN true"] * 200) is None
    assert "more than 200 lines" in (instruction_problem(["RUN true"] * 201) or "")


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["RUN a \\", "  # why", "", " b \\\n c", "ENV A=1"], ["RUN a b c", "ENV A=1"]),
        (["  RUN a\\  ", "#"], ["RUN a"]),
        (["", "# only"], []),
    ],
)
def test_an_instruction_is_one_line_without_comments(lines: list[str], joined: list[str]) -> None:
    assert list(joined_instructions(lines)) == joined


@pytest.mark.parametrize(
    ("packages", "lines", "bundle", "expected"),
    [
        ((), (), "/ca", []),
        ((), ("ENV A=1",), "/ca", [APT_SETTINGS, "ENV A=1\n"]),
        (
            ("b", "a"),
            ("RUN c",),
            "",
            [
                APT_SETTINGS,
                "RUN export DEBIAN_FRONTEND=noninteractive; \\\n"
                "    command -v apt-get > /dev/null || "
                "{ echo 'the base image has no apt-get'; exit 1; }; \\\n"
                "    apt-get update && apt-get install -y --no-install-recommends b a \\\n"
                "    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*\n",
                "RUN c\n",
            ],
        ),
    ],
)
def test_packages_come_before_the_lines_of_a_crew(
    packages: tuple[str, ...], lines: tuple[str, ...], bundle: str, expected: list[str]
) -> None:
    assert list(system_instructions(packages, lines, bundle)) == expected


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
