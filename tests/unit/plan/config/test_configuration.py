"""Configuration files: selection, keys, and errors."""

import pytest

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


@pytest.mark.parametrize(
    ("text", "smoke"),
    [
        ("", None),
        ("smoke = {}", {}),
        ("smoke = {input = {topic = 'tides', n = [1]}}", {"input": {"topic": "tides", "n": [1]}}),
        ("[deployment.smoke]\ntimeout = '2m'\ninput = {}", {"timeout": "2m", "input": {}}),
    ],
)
def test_smoke(text: str, smoke: dict[str, object] | None) -> None:
    planned_with = planned({"main.py": MAIN, "crew.toml": f"[deployment]\n{text}\n"}).plan
    assert planned_with.smoke == smoke
    assert planned_with.as_status().get("smoke") == smoke


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


def test_a_plan_with_smoke_fits_into_a_termination_message() -> None:
    names = [f"V{number}{'X' * 120}" for number in range(16)]
    toml = f"[run]\nenv_required = {names}\n[deployment]\nsmoke.input.a = '{'x' * 1000}'\n"
    assert planned({"main.py": MAIN, "crew.toml": toml}).plan.smoke
    toml += f"[artifacts]\ninclude = ['{'a' * 500}']\n"
    error = failure({"main.py": MAIN, "crew.toml": toml})
    assert error.reason == "ConfigInvalid" and "at most 3300" in error.hint


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


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "[deployment]\nentrypiont = 'a'\n",
            "crew.toml line 2: deployment.entrypiont is unknown",
            "'entrypoint'",
        ),
        ("[deploymnt]\n", "crew.toml line 1: deploymnt is unknown", "'deployment'"),
        ("[run]\ntimeout = '5 minutes'\n", "crew.toml line 2: run.timeout is not a duration", "1h30m"),
        ("[run]\ntimeout = '0s'\n", "run.timeout is not a duration", "90s"),
        ("[run]\ntimeout = 30\n", "crew.toml line 2: run.timeout must be a non-empty string", "1h"),
        ("\n\n[run]\nenv_required = ['A-B']\n", "crew.toml line 4: run.env_required has 'A-B'", "A-Z"),
        ("[run]\nenv_required = 'A'\n", "run.env_required must be a list", "OPENAI_API_KEY"),
        ("[deployment]\npython = '3.9'\n", "deployment.python is '3.9'; offered here: 3.11, 3.12", "Choose"),
        ("[deployment]\npython = 3.11\n", "deployment.python must be a non-empty string", '"3.11"'),
        (
            "[deployment]\nentrypoint = 'main'\n",
            "line 2: deployment.entrypoint is 'main', not module:object",
            "pkg",
        ),
        ("[deployment\n", "crew.toml is not valid TOML", "Correct crew.toml"),
        ("deployment = 3\n", "crew.toml line 1: deployment must be a table", "[deployment]"),
        ("[artifacts]\ninclude = ['../x']\n", "artifacts.include has '../x'", "output/**"),
        ("[artifacts]\nincludes = []\n", "artifacts.includes is unknown", "'include'"),
        (f"[artifacts]\ninclude = {['a' * 600]}\n", "1 patterns of 600 characters", "at most 20"),
        ("[build]\nexcludes = []\n", "build.excludes is unknown", "'exclude'"),
        ("[deployment]\nsmoke = true\n", "line 2: deployment.smoke must be a table", "[deployment.smoke]"),
        ("[deployment]\nsmoke = {inputs = {}}\n", "deployment.smoke.inputs is unknown", "'input'"),
        ("[deployment.smoke]\ninput = 3\n", "line 2: deployment.smoke.input must be a table", "input]"),
        ("[deployment.smoke]\ninput = {a = 2026-11-23}\n", "deployment.smoke.input has a date", "topic"),
        ("[deployment.smoke]\ninput = {a = [nan]}\n", "has a date, nan or inf", "topic"),
        (f"[deployment.smoke.input]\na = '{'x' * 1020}'\n", "has 1029 bytes as JSON", "at most 1024"),
        ("[deployment.smoke]\ntimeout = 'soon'\n", "deployment.smoke.timeout is not a duration", "90s"),
        ("[run.inputs]\na = 'text'\n", "line 2: run.inputs.a must be a type or a table", "Types: string"),
        ("[run.inputs.a]\ntype = 'text'\n", "line 2: run.inputs.a.type is 'text'", "Types: string"),
        ("[run.inputs.a]\nkind = 'x'\n", "run.inputs.a.kind is unknown", "Known keys"),
        ("[run.inputs.a]\nenum = 3\n", "run.inputs.a.enum must be a list", "enum ="),
        ("[run.inputs.a]\nrequired = 1\n", "run.inputs.a.required must be true or false", "false"),
        ("[run.inputs.a]\ndefault = nan\n", "run.inputs.a or a field after it has a date", "numbers"),
        (f"[run.inputs.a]\ndescription = '{'x' * 1024}'\n", "as JSON Schema", "at most 1024"),
        ("[run.inputs]\n'a b' = 'string'\n", "is not a valid name", "letters"),
        ("[deployments.a]\n[deployment]\n", "are mutually exclusive", "one of the two"),
    ],
)
def test_errors_name_file_and_key(text: str, message: str, hint: str) -> None:
    error = failure({"crew.toml": text, "main.py": MAIN})
    assert error.reason == "ConfigInvalid"
    assert message in error.message
    assert hint in error.hint


def test_unknown_framework() -> None:
    error = failure({"crew.toml": "[deployment]\nframework = 'langgrph'\n", "main.py": MAIN})
    assert error.reason == "UnsupportedFramework"
    assert "'langgraph'" in error.hint


@pytest.mark.parametrize(("crew", "entrypoint"), [("first", "main:kickoff"), ("other", "main:Other")])
def test_crew_is_selected_by_name(crew: str, entrypoint: str) -> None:
    files = {
        "main.py": MAIN,
        "crew.toml": "[deployments.first]\n[deployments.other]\nentrypoint = 'main:Other'\n",
    }
    assert planned(files, crew).plan.entrypoint == entrypoint
    assert "first, other" in failure(files, "third").message


def test_crew_name_needs_a_table() -> None:
    assert "no configuration file" in failure({"main.py": MAIN}, "other").message
    assert "[deployments.other]" in failure({"main.py": MAIN, "crew.toml": "[deployment]\n"}, "other").message


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

    @pytest.mark.parametrize(
        ("text", "reason", "message"),
        [
            ("{", "ConfigInvalid", "langgraph.json line 1"),
            ("[]", "ConfigInvalid", "JSON object"),
            ("{}", "ConfigInvalid", "graphs must be"),
            ('{"graphs": {"a": "../a.py:x"}}', "ConfigInvalid", "leaves the source"),
            ('{"graphs": {"a": 3}}', "ConfigInvalid", "graphs.a"),
            ('{"graphs": {"a": "./a.ts:x"}}', "UnsupportedFramework", "not Python"),
        ],
    )
    def test_errors(self, text: str, reason: str, message: str) -> None:
        error = failure({"langgraph.json": text})
        assert error.reason == reason
        assert message in error.message


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
