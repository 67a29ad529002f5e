"""Configuration files: selection, keys, and errors."""

import re

import pytest

from api.v1.env.schema import NAME
from plan.config.configuration import read_configuration
from plan.errors import PlanError
from plan.make import Planned, make_plan

MAIN = "def kickoff(inputs): ...\nclass Other: ...\n"


def planned(files: dict[str, str], crew: str | None = None) -> Planned:
    return make_plan({path: text.encode() for path, text in files.items()}, crew, ["3.11", "3.12"])


def failure(files: dict[str, str], crew: str | None = None) -> PlanError:
    with pytest.raises(PlanError) as raised:
        planned(files, crew)
    return raised.value


FORMS = {
    "crew.toml": '[deployment]\nentrypoint = "one:kickoff"\n',
    "crewship.toml": '[deployment]\nentrypoint = "two:kickoff"\n',
    "langgraph.json": '{"graphs": {"agent": "./three.py:kickoff"}}',
    "pyproject.toml": '[tool.crewyard.deployment]\nentrypoint = "four:kickoff"\n[tool.crewai]\n',
}
MODULES = {f"{name}.py": MAIN for name in ("one", "two", "three", "four", "main")}


@pytest.mark.parametrize(
    ("present", "entrypoint"),
    [
        (list(FORMS), "one:kickoff"),
        (["crewship.toml", "langgraph.json", "pyproject.toml"], "two:kickoff"),
        (["langgraph.json", "pyproject.toml"], "three:kickoff"),
        (["pyproject.toml"], "four:kickoff"),
        ([], "main:kickoff"),
    ],
)
def test_only_the_first_file_applies(present: list[str], entrypoint: str) -> None:
    assert planned({**MODULES, **{name: FORMS[name] for name in present}}).plan.entrypoint == entrypoint


def test_all_keys() -> None:
    plan = planned(
        {
            "pkg/crew.py": "class MyCrew: ...",
            "crew.toml": """
                [deployment]
                framework = "crewai"
                entrypoint = "pkg.crew:MyCrew"
                python = "3.12"
                [build]
                exclude = ["tests"]
                [artifacts]
                include = ["*.md", "output/**", "*.md"]
                [run]
                timeout = "1h30m"
                env_required = ["OPENAI_API_KEY", "OPENAI_API_KEY", "OTHER"]
                """,
        }
    ).plan
    assert plan.as_status() == {
        "framework": "crewai",
        "entrypoint": "pkg.crew:MyCrew",
        "python": "3.12",
        "timeout": "1h30m",
        "envRequired": ["OPENAI_API_KEY", "OTHER"],
        "artifacts": ["*.md", "output/**"],
    }


def test_declared_inputs_become_a_json_schema() -> None:
    toml = """
        [run.inputs]
        topic = "string"
        depth = {type = "integer", default = 3, description = "Sources."}
        style = {enum = ["a", "b"], required = false}
        """
    plan = planned({"main.py": MAIN, "crew.toml": toml}).plan
    assert plan.as_status()["inputs"] == {
        "schema": {
            "type": "object",
            "properties": {
                "topic": {"type": "string"},
                "depth": {"type": "integer", "default": 3, "description": "Sources."},
                "style": {"enum": ["a", "b"]},
            },
            "required": ["topic"],
        },
        "declared": True,
    }
    assert "inputs" not in planned({"main.py": MAIN}).plan.as_status()


def test_smoke_of_the_chosen_crew_applies() -> None:
    toml = "[deployments.a]\nsmoke = {timeout = '1m'}\n[deployments.b]\nsmoke = {timeout = '2m'}\n"
    files = {"main.py": MAIN, "crew.toml": toml}
    assert planned(files).plan.smoke == {"timeout": "1m"}
    assert planned(files, "b").plan.smoke == {"timeout": "2m"}


ARTIFACTS = "artifacts]\ninclude = ['output/**']\n"


@pytest.mark.parametrize(
    "files",
    [
        {"crew.toml": f"[{ARTIFACTS}"},
        {"crew.toml": f"[{ARTIFACTS}", "pyproject.toml": FORMS["pyproject.toml"]},
        {"pyproject.toml": f"[tool.crewyard.{ARTIFACTS}"},
        {"pyproject.toml": f"[tool.crewyard.{ARTIFACTS}", "langgraph.json": FORMS["langgraph.json"]},
    ],
    ids=range(4),
)
def test_artifacts_stand_beside_another_configuration(files: dict[str, str]) -> None:
    beside = {name: text for name, text in files.items() if ARTIFACTS not in text}
    expected = planned({**MODULES, **beside}).plan.entrypoint
    plan = planned({**MODULES, **files}).plan
    assert (plan.entrypoint, plan.artifacts) == (expected, ("output/**",))


VARIABLES = [f"V{number:03}{'X' * 12}" for number in range(128)]
DURATION = "Write it like 90s, 30m or 1h30m."
VARIABLE = "Use A-Z, 0-9 and _."
SLIM = 'Write profile = "slim"; the operator can offer another base image (CREWYARD_BASE_IMAGES).'
MORE_THAN_PYTHON = "an image with more than Python; crews are built on the plain images of this installation"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[deploymnt]", "line 1: deploymnt is unknown", "Did you mean 'deployment'?"),
        (
            "[deployment]\nentrypiont = 'a'",
            "line 2: deployment.entrypiont is unknown",
            "Did you mean 'entrypoint'?",
        ),
        ("[build]\nexcludes = []", "line 2: build.excludes is unknown", "Did you mean 'exclude'?"),
        ("[run]\nx = []", "line 2: run.x is unknown", "Known keys: timeout, env_required, inputs."),
        (
            "[deployments.a]\n[deployments.b]\npyhton = '3'",
            "line 3: deployments.b.pyhton is unknown",
            "Did you mean 'python'?",
        ),
        ("deployment = 3", "line 1: deployment must be a table", "Write [deployment] with its keys below."),
        (
            "[deployments.a]\n[deployment]",
            "line 1: deployments and deployment are mutually exclusive",
            "Keep one of the two.",
        ),
        (
            "[run]\ntimeout = 30",
            "line 2: run.timeout must be a non-empty string",
            'For example: timeout = "1h".',
        ),
        (
            "[run]\nenv_required = 'A'",
            "line 2: run.env_required must be a list of strings",
            'For example: env_required = ["OPENAI_API_KEY"].',
        ),
        (
            "[deployment]\npython = 3.11",
            "line 2: deployment.python must be a non-empty string",
            'For example: python = "3.11".',
        ),
        (
            "[deployment]\nframework = 1",
            "line 2: deployment.framework must be a non-empty string",
            'For example: framework = "langgraph".',
        ),
        (
            "[deployment]\nentrypoint = 1",
            "line 2: deployment.entrypoint must be a non-empty string",
            'For example: entrypoint = "pkg.crew:MyCrew".',
        ),
        (
            "[deployments.a]\n[deployments.b]\nframework = 1",
            "line 3: deployments.b.framework must be a non-empty string",
            'For example: framework = "langgraph".',
        ),
        (
            "[deployments.a]\n[deployments.b]\npython = 1",
            "line 3: deployments.b.python must be a non-empty string",
            'For example: python = "3.11".',
        ),
        (
            "[deployments.a]\n[deployments.b]\nentrypoint = 1",
            "line 3: deployments.b.entrypoint must be a non-empty string",
            'For example: entrypoint = "pkg.crew:MyCrew".',
        ),
        *(
            (
                f"[build]\n{key} = 1",
                f"line 2: build.{key} must be a list of strings",
                f'For example: {key} = ["{value}"].',
            )
            for key, value in (
                ("exclude", "tests"),
                ("extras", "pdf"),
                ("groups", "tools"),
                ("packages", "ffmpeg"),
            )
        ),
        (
            "[build]\ndockerfile = 1",
            "line 2: build.dockerfile must be a non-empty string",
            'For example: dockerfile = "Dockerfile".',
        ),
        (
            "[build]\npackages = ['a b']",
            "line 2: build.packages has 'a b', which is not the name of a Debian package",
            'For example: packages = ["ffmpeg", "libpq5"].',
        ),
        *(
            (f"[run]\ntimeout = '{text}'", f"line 2: run.timeout is not a duration: '{text}'", DURATION)
            for text in ("5 minutes", "0s", "1h 5m", "h")
        ),
        (
            "[deployment.smoke]\ntimeout = 'soon'",
            "line 2: deployment.smoke.timeout is not a duration: 'soon'",
            DURATION,
        ),
        (
            "[run]\nenv_required = ['A-B']",
            "line 2: run.env_required has 'A-B', which is not a valid variable name",
            VARIABLE,
        ),
        (
            f"[run]\nenv_required = ['{'A' * 300}']",
            f"line 2: run.env_required has '{'A' * 200}', which is not a valid variable name",
            VARIABLE,
        ),
        (
            f"[run]\nenv_required = {[*VARIABLES, 'A']}",
            "line 2: run.env_required has 129 names",
            "Use at most 128.",
        ),
        (
            f"[run]\nenv_required = {[*VARIABLES[1:], 'A' * 17]}",
            "line 2: run.env_required has names of 2049 characters in total",
            "Use at most 2048: list only variables that every run needs, or use shorter names.",
        ),
    ],
)
def test_wrong_value_is_refused_with_line_and_key(text: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_configuration({"crew.toml": text.encode()}, None)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"crew.toml {message}",
        hint,
    )


@pytest.mark.parametrize("text", ["90s", "30m", "1h", "1h30m", "1h0m5s", "999999h"])
def test_duration_has_hours_minutes_and_seconds(text: str) -> None:
    assert read_configuration({"crew.toml": f"[run]\ntimeout = '{text}'".encode()}, None).timeout == text


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("crew.toml", "[run]\nenv_required = ['PATH', 'A', 'PYTHONPATH', 'CREWYARD_X', 'PATHS', 'HOME']\n"),
        (
            "langgraph.json",
            '{"graphs": {"x": "a:graph"}, "env": {"PATH": "", "A": "1", "PYTHONPATH": "", "CREWYARD_X": "", '
            '"PATHS": "", "HOME": ""}}',
        ),
    ],
)
def test_variables_that_no_project_can_set_are_not_required(file: str, text: str) -> None:
    found = read_configuration({file: text.encode()}, None)
    assert found.env_required == ("A", "PATHS")
    assert found.notes == (
        "PATH, PYTHONPATH, CREWYARD_X, HOME cannot be variables of a project, and are not required",
    )


@pytest.mark.parametrize(
    "name", ["PATH", "PATHS", "HOME", "HOMES", "PYTHON", "PYTHONPATH", "CREWYARD_", "CREWYARD", "_PATH", "A"]
)
def test_variable_is_required_where_the_api_can_set_it(name: str) -> None:
    found = read_configuration({"crew.toml": f"[run]\nenv_required = ['{name}']\n".encode()}, None)
    assert bool(found.env_required) is (re.search(NAME["pattern"], name) is not None)


def test_most_variables_with_the_most_characters_are_accepted() -> None:
    text = f"[run]\nenv_required = {VARIABLES}"
    assert read_configuration({"crew.toml": text.encode()}, None).env_required == tuple(VARIABLES)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[deployment]\nprofile = 'x'", f"line 2: deployment.profile is 'x', {MORE_THAN_PYTHON}", SLIM),
        ("[deployment]\nprofile = 1", "line 2: deployment.profile must be a non-empty string",
         'For example: profile = "slim".'),
    ],
)  # fmt: skip
def test_other_profile_of_crewship_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_configuration({"crewship.toml": text.encode()}, None)
    assert (raised.value.message, raised.value.hint) == (f"crewship.toml {message}", hint)


def test_keys_of_other_crews_of_crewship_are_noted_and_their_profile_read() -> None:
    text = b"[deployments.a]\nzone = 1\n[deployments.b]\nregion = 'eu'\nprofile = 'slim'\n"
    found = read_configuration({"crewship.toml": text + b"[deployments.c]\nprofile = 'x'\n"}, None)
    assert [named.name for named in found.named] == ["b"]
    assert found.notes == (
        "crewship.toml: ignored keys: deployments.a.zone, deployments.b.region",
        f"crewship.toml line 7: deployments.c.profile is 'x', {MORE_THAN_PYTHON}: c is left out",
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[deployment]\nframework = 'cobol'", "line 2: deployment.framework"),
        ("[deployments.a]\n[deployments.b]\nframework = 'cobol'", "line 3: deployments.b.framework"),
    ],
)
def test_unsupported_framework_of_any_deployment_is_refused(text: str, place: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_configuration({"crew.toml": text.encode()}, None)
    assert raised.value.reason == "UnsupportedFramework"
    assert raised.value.message.startswith(f"crew.toml {place} is 'cobol'")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("type = 'team'", "type is 'team'", 'Write type = "crew" or type = "flow".'),
        ("type = 1", "type must be a non-empty string", 'For example: type = "crew".'),
        (
            "definition = 1",
            "definition must be a non-empty string",
            'For example: definition = "crew.jsonc".',
        ),
    ],
)
def test_wrong_value_of_crewai_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_configuration({"pyproject.toml": f"[tool.crewai]\n{text}".encode()}, None)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"pyproject.toml line 2: tool.crewai.{message}",
        hint,
    )


@pytest.mark.parametrize(("crew", "entrypoint"), [("first", "main:kickoff"), ("other", "main:Other")])
def test_crew_is_selected_by_name(crew: str, entrypoint: str) -> None:
    files = {
        "main.py": MAIN,
        "crew.toml": "[deployments.first]\n[deployments.other]\nentrypoint = 'main:Other'\n",
    }
    assert planned(files, crew).plan.entrypoint == entrypoint


class TestLangGraph:
    def test_file_path_becomes_a_module(self) -> None:
        files = {
            "src/agent/graph.py": "graph = make()",
            "langgraph.json": '{"dependencies": [".", "langchain_openai"], "python_version": "3.12",'
            ' "graphs": {"agent": {"path": "./src/agent/graph.py:graph"}}, "env": ".env"}',
        }
        result = planned(files)
        assert result.plan.entrypoint == "agent.graph:graph"
        assert result.plan.framework == "langgraph"
        assert result.plan.python == "3.12"
        assert result.declaration.lines == ("langchain_openai",)


class TestCrewAI:
    PROJECT = '[project]\nname = "p"\ndependencies = ["crewai[tools]>=1"]\n[tool.crewai]\ntype = "crew"\n'

    def test_only_decorated_class_is_the_entrypoint(self) -> None:
        plan = planned(
            {
                "pyproject.toml": self.PROJECT,
                "src/writers/__init__.py": "",
                "src/writers/crew.py": "from crewai.project import CrewBase\n@CrewBase\nclass Writers: ...\n",
            }
        ).plan
        assert (plan.entrypoint, plan.framework) == ("writers.crew:Writers", "crewai")

    def test_flow_is_found_by_its_base_class(self) -> None:
        files = {
            "pyproject.toml": self.PROJECT.replace('"crew"', '"flow"'),
            "src/p/main.py": "class F(Flow[State]): ...\n",
        }
        assert planned(files).plan.entrypoint == "p.main:F"

    def test_none_or_several_classes(self) -> None:
        two = {"a.py": "@CrewBase\nclass A: ...\n", "b.py": "@CrewBase\nclass B: ...\n"}
        assert "a:A, b:B" in failure({"pyproject.toml": self.PROJECT, **two}).message
        assert "none was found" in failure({"pyproject.toml": self.PROJECT}).message
