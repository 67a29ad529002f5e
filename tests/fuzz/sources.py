"""What a repository's author writes: configuration, requirements, code that is read; and what pip answers."""

import json

from plan.errors import PlanError
from plan.exclude import excluded_paths
from plan.make import make_plan
from plan.packages.pip_log import dependency_failure
from tests.fuzz.target import FuzzTarget, parts, words

NAMES = (
    "crew.toml",
    "crewship.toml",
    "langgraph.json",
    "pyproject.toml",
    "requirements.txt",
    "main.py",
    "src/pkg/crew.py",
    "src/pkg/main.py",
    "setup.py",
    "more/requirements.in",
    ".env",
    "uv.lock",
)
_LONGEST_STATUS = 4096


def plan(data: bytes) -> None:
    """A tree whose files are all chosen by the data; the plan fits into a build pod's termination message."""
    files: dict[str, bytes] = {}
    for piece in data.split(b"\xff")[:8]:
        if piece:
            files[NAMES[piece[0] % len(NAMES)]] = piece[1:]
    for crew in (None, "other"):
        for private in (False, True):
            try:
                planned = make_plan(files, crew, ("3.11", "3.12"), private)
            except PlanError as error:
                assert error.reason and error.message and error.hint
                assert len(error.message) < 10_000
                continue
            assert len(json.dumps(planned.plan.as_status())) < _LONGEST_STATUS


def exclude(data: bytes) -> None:
    """Patterns over paths."""
    patterns, paths = (part.decode("utf-8", "replace").split("\n") for part in parts(data, 2))
    paths = [path.strip("/") for path in paths]  # a source has relative ones only
    try:
        excluded = excluded_paths(dict.fromkeys(paths, b""), patterns)
    except PlanError:
        return
    assert set(excluded) <= set(paths)


def pip_log(data: bytes) -> None:
    """Any output of an installation becomes a reason, a message and a next step."""
    error = dependency_failure(data.decode("utf-8", "replace"))
    assert error.reason and error.message and error.hint and len(error.message) < 10_000


def _file(name: str, text: str) -> bytes:
    return bytes([NAMES.index(name)]) + text.encode()


def plans() -> list[bytes]:
    """A tree of each kind that there is."""
    crew = '[deployment]\nframework = "python"\nentrypoint = "main:kickoff"\npython = "3.11"\n'
    run = '[run]\ntimeout = "1h30m"\nenv_required = ["A_KEY"]\n[build]\nexclude = ["tests", "*.md"]\n'
    several = '[deployments.a]\nentrypoint="main:f"\n[deployments.other]\nentrypoint = "main:g"\n'
    graph = '{"graphs": {"agent": "./src/pkg/main.py:graph"}, "dependencies": ["."], "env": {"A": ""}}'
    project = '[project]\nname = "pkg"\nversion = "1"\ndependencies = ["rich>=1; python_version>\'3\'"]\n'
    tool = project + '[tool.crewyard.deployment]\nentrypoint = "pkg.crew:C"\n'
    crewai = project + '[tool.crewai]\ntype = "crew"\n[project.scripts]\nkickoff = "pkg.main:kickoff"\n'
    main = _file("main.py", "def kickoff(inputs):\n    return inputs\nasync def f(): ...\nimport os\n")
    base = "from crewai.project import CrewBase\n@CrewBase\nclass C:\n    def crew(self): ...\n"
    wants = "-r more/requirements.in\nrich==1.0 --hash=sha256:00\n# x\nurl @ https://e/x.whl\n-e .\n\\\n"
    trees = [
        [_file("crew.toml", crew + run), main, _file("requirements.txt", wants)],
        [_file("crew.toml", several), main],
        [_file("langgraph.json", graph), _file("src/pkg/main.py", "graph = 1\n")],
        [_file("pyproject.toml", tool), _file("src/pkg/crew.py", base), _file("uv.lock", "version = 1\n")],
        [_file("pyproject.toml", crewai), _file("src/pkg/main.py", "def kickoff(): ...\n")],
        [_file("crew.toml", 'x = 1\n[deployment]\npython = 3.11\nentrypoint = "a..b:"\n')],
        [_file("crew.toml", "[" * 200 + "]" * 200), _file("langgraph.json", "[" * 300)],
        [
            main,
            _file("more/requirements.in", "-r ../requirements.txt\n"),
            _file("requirements.txt", "-c more/requirements.in"),
        ],
    ]
    return [b"\xff".join(tree) for tree in trees]


def excludes() -> list[bytes]:
    """Patterns of each form."""
    return [b"tests\n*.md\n/a/**/b\n!keep\nx[a-z]?\\ \xfftests/a.py\na/b\na/x/y/b\nkeep\nxa1"]


def logs() -> list[bytes]:
    """Yield the ends of an installer's output."""
    return words(
        "ERROR: Could not find a version that satisfies the requirement nosuch==1 (from versions: none)\n"
        "ERROR: No matching distribution found for nosuch==1\n",
        "ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.\n"
        "The conflict is caused by:\n    a 1 depends on c<1\n    b 2 depends on c>2\n",
        "ERROR: Failed building wheel for thing\n  error: subprocess-exited-with-error\n  x\n",
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n",
        "ERROR: Invalid requirement: 'a b' (from line 3 of requirements.txt)\n",
        "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    Expected sha256 0\n",
    )


TARGETS = (
    FuzzTarget("plan", ("plan",), plan, plans, 4096),
    FuzzTarget("exclude", ("plan",), exclude, excludes, 512),
    FuzzTarget("pip-log", ("plan",), pip_log, logs, 4096),
)
