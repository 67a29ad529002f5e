"""Configuration files of other tools: their own keys are noted, what they ask for is honoured or refused."""

import json

import pytest

from plan.errors import PlanError
from plan.make import Planned, make_plan

CODE = {"main.py": "def kickoff(inputs): ...\n", "agent.py": "graph = build()\n"}
CREW_CLASS = "from crewai.project import CrewBase\n@CrewBase\nclass Tides: ...\n"


def planned(files: dict[str, str]) -> Planned:
    return make_plan({path: text.encode() for path, text in files.items()}, None, ["3.11", "3.12"])


def failure(files: dict[str, str]) -> PlanError:
    with pytest.raises(PlanError) as raised:
        planned(files)
    return raised.value


def langgraph(**values: object) -> dict[str, str]:
    return {**CODE, "langgraph.json": json.dumps({"graphs": {"agent": "./agent.py:graph"}, **values})}


def crewship(deployment: str = "", rest: str = "") -> dict[str, str]:
    return {**CODE, "crewship.toml": f"[deployment]\n{deployment}\n{rest}"}


def tool_crewai(keys: str) -> dict[str, str]:
    return {
        "pyproject.toml": f"[tool.crewai]\ntype = 'crew'\n{keys}\n",
        "requirements.txt": "crewai\n",
        "src/tides/crew.py": CREW_CLASS,
    }


@pytest.mark.parametrize(
    ("files", "notes"),
    [
        (crewship('profile = "slim"'), ()),
        (
            crewship('profile = "slim"\nregion = "eu"', "[build]\ncache = true\n[scaling]\nmax = 3\n"),
            ("crewship.toml: ignored keys: scaling, build.cache, deployment.region",),
        ),
        (langgraph(), ()),
        (langgraph(dockerfile_lines=[], pip_config_file=None), ()),
        (
            tool_crewai("version = 2"),
            (
                "pyproject.toml: ignored keys: tool.crewai.version",
                "no entrypoint is configured; found tides.crew:Tides",
            ),
        ),
    ],
)
def test_keys_without_effect_are_noted(files: dict[str, str], notes: tuple[str, ...]) -> None:
    assert planned(files).notes == notes


@pytest.mark.parametrize(
    ("files", "reason", "message", "hint"),
    [
        (
            crewship('framework = "langgraph-js"\nentrypoint = "./src/graph.ts:graph"\nprofile = "browser"'),
            "UnsupportedFramework",
            "deployment.framework is 'langgraph-js'; supported are crewai, langgraph, python",
            "Only Python crews",
        ),
        (
            {"crewship.toml": "[deployment]\nentrypoint = './graph.ts:graph'\n", "package.json": "{}"},
            "UnsupportedFramework",
            "found package.json but no Python file: this looks like JavaScript",
            "crewai, langgraph, python",
        ),
        (
            {"package.json": "{}", "index.js": ""},
            "UnsupportedFramework",
            "JavaScript",
            "spec.source.git.path",
        ),
        ({"go.mod": "", "main.go": ""}, "UnsupportedFramework", "Go", "spec.source.git.path"),
        (
            langgraph(graphs={"agent": "./src/graph.ts:graph"}),
            "UnsupportedFramework",
            "graphs.agent is ./src/graph.ts, which is not Python",
            "crewai, langgraph, python",
        ),
    ],
)
def test_unsupported_key_is_refused_with_the_fix(
    files: dict[str, str], reason: str, message: str, hint: str
) -> None:
    error = failure(files)
    assert error.reason == reason
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    "files",
    [
        {**CODE, "crew.toml": '[deployment]\nprofile = "slim"\n'},
        {**CODE, "pyproject.toml": '[tool.crewyard.deployment]\nprofile = "slim"\n'},
    ],
)
def test_unknown_keys_of_our_own_files_are_errors(files: dict[str, str]) -> None:
    assert "deployment.profile is unknown" in failure(files).message


def test_package_json_beside_python_is_no_other_language() -> None:
    assert planned({**CODE, "package.json": "{}"}).plan.entrypoint == "main:kickoff"
