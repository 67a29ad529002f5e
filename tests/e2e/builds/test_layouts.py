"""How crews are laid out: an src directory, a package to be installed, several crews of one repository."""

import pytest

from tests.daily import daily
from tests.e2e.conftest import BuiltCrew
from tests.e2e.failures import failed
from tests.e2e.registry import RegistryRepository

WHERE = "import pathlib\n\n\ndef kickoff(inputs):\n    return str(pathlib.Path(__file__).resolve())\n"
PROJECT = '[project]\nname = "harbour"\nversion = "1"\ndependencies = ["idna==3.10"]\n'
BUILD = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
OWN = {
    "crew.toml": '[deployment]\nentrypoint = "harbour.crew:kickoff"\n',
    "pyproject.toml": f'{BUILD}{PROJECT}[tool.setuptools.packages.find]\nwhere = ["lib"]\n',
    "lib/harbour/__init__.py": "",
    "lib/harbour/crew.py": f"import idna\n{WHERE}",
}


@pytest.mark.nightly
async def test_src_layout(crew):
    files = {
        "crew.toml": '[deployment]\nentrypoint = "harbour.crew:kickoff"\n',
        "src/harbour/__init__.py": "",
        "src/harbour/crew.py": WHERE,
    }
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    run = await BuiltCrew(crew.testbed, crew.project, deployment).run("harbour.crew:kickoff")
    assert run["output"] == "/app/src/harbour/crew.py"


@pytest.mark.nightly
async def test_own_package_is_installed(crew):
    """Slow: two builds, each with a dependency image."""
    deployment = await crew.upload_project.deploy_and_wait(OWN, preview={})
    run = await BuiltCrew(crew.testbed, crew.project, deployment).run("harbour.crew:kickoff")
    assert run["status"] == "succeeded", run
    assert "/app" not in run["output"] and run["output"].endswith("harbour/crew.py")
    # Other code of the package is another dependency image.
    changed = {**OWN, "lib/harbour/crew.py": "def kickoff(inputs):\n    return 'changed'\n"}
    second = await crew.upload_project.deploy_and_wait(changed, preview={})
    run = await BuiltCrew(crew.testbed, crew.project, second).run("harbour.crew:kickoff")
    assert run["output"] == "changed"


SEVERAL = {
    "crew.toml": "".join(
        f'[deployments.{name}]\nentrypoint = "{name}:kickoff"\n' for name in ("tide", "wind")
    ),
    "tide.py": "def kickoff(inputs):\n    return 'tide'\n",
    "wind.py": "def kickoff(inputs):\n    return 'wind'\n",
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["tide", "wind"])
async def test_one_of_several_crews(crew, name):
    deployment = await crew.upload_project.deploy_and_wait(SEVERAL, preview={}, crew=name)
    run = (await crew.testbed.post("/v1/runs", {"deployment": deployment}))["id"]
    assert (await crew.wait_finished(run))["output"] == name


SCRIPT = "import json, sys\nprint('working')\nprint(json.dumps({'got': json.load(sys.stdin)}))\n"


async def test_a_run_chooses_an_entrypoint(crew):
    files = {**SEVERAL, "tools/report.py": SCRIPT}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    runs = [
        (await crew.testbed.post("/v1/runs", {"deployment": deployment, "input": {"depth": 3}, **chosen}))[
            "id"
        ]
        for chosen in ({}, {"entrypoint": "wind"}, {"entrypoint": "tools/report.py"})
    ]
    outputs = [(await crew.wait_finished(run))["output"] for run in runs]
    assert outputs == ["tide", "wind", {"got": {"depth": 3}}]


@pytest.mark.nightly
async def test_the_only_crew_is_found(crew):
    """Neither a configuration file nor main:kickoff: the class is found by reading."""
    library = "def CrewBase(kind):\n    return kind\n"
    source = (
        "from marks import CrewBase\n\n\n@CrewBase\nclass Harbour:\n"
        "    def kickoff(self, inputs):\n        return inputs\n"
    )
    files = {"src/marks.py": library, "src/harbour/crew.py": source}
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    run = (await crew.testbed.post("/v1/runs", {"deployment": deployment, "input": {"depth": 3}}))["id"]
    assert (await crew.wait_finished(run))["output"] == {"depth": 3}


@pytest.mark.nightly
async def test_unknown_crew_name(crew):
    deployment = await crew.upload_project.deploy(SEVERAL, crew="rain")
    await failed(crew.upload_project, deployment, "ConfigInvalid", ["rain", "tide"])


COAST = "def kickoff(inputs):\n    return 'coast'\n"
GRAPH = "class Chart:\n    def invoke(self, inputs):\n        return ['chart', inputs]\n\n\nchart = Chart()\n"
FILES = {
    "crewship.toml": ('[deployment]\nentrypoint = "coast:kickoff"\n', {"coast.py": COAST}, "coast"),
    "langgraph.json": (
        '{"dependencies": ["."], "graphs": {"chart": "./lib/chart.py:chart"}}',
        {"lib/chart.py": GRAPH},
        ["chart", {"depth": 3}],
    ),
    "pyproject.toml": (
        '[tool.crewyard.deployment]\nentrypoint = "coast:kickoff"\n',
        {"coast.py": COAST},
        "coast",
    ),
}


@pytest.mark.parametrize("name", daily(FILES, ("langgraph.json",)))
async def test_crew_by_configuration_file(crew, name):
    """crew.toml is that of all others."""
    text, code, output = FILES[name]
    deployment = await crew.upload_project.deploy_and_wait({name: text, **code}, preview={})
    run = (await crew.testbed.post("/v1/runs", {"deployment": deployment, "input": {"depth": 3}}))["id"]
    assert (await crew.wait_finished(run))["output"] == output


async def test_image_user_cannot_write_the_code(crew):
    image = await crew.upload_project.image(crew.deployment)
    registry = RegistryRepository.of(image)
    assert b'"User":"65532' in (await registry.configuration(image)).replace(b": ", b":")
    files = await registry.files(image, 2)
    assert "app/main.py" in files and "opt/crewyard/runner/__main__.py" in files
