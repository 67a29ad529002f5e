"""What a repository's author writes: configuration, requirements, code that is read; and what pip answers."""

import json

from plan.base.images import ImageRules, with_allowed_images
from plan.base.read import read_base_dockerfile
from plan.base.render import base_instructions
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


def own_dockerfile(data: bytes) -> None:
    """A Dockerfile: what is executed has allowed images only, and no line that continues in ours."""
    files = {"Dockerfile": data, "data/a.txt": b"", "main.py": b""}
    try:
        base = read_base_dockerfile(files, files, "Dockerfile", "crew.toml: build.dockerfile")
        base = with_allowed_images(base, _RULES)
    except PlanError as error:
        assert error.reason and error.message and error.hint and len(error.message) < 10_000
        return
    stages = {"scratch"}
    for line in "".join(base_instructions(base, "3.11", "")).splitlines():
        assert not line.startswith(("RUN", "FROM", "COPY")) or not line.endswith("\\") or "found=" in line
        if line.startswith("FROM "):
            image, *name = line.split()[1:]
            assert image in stages or _RULES.resolve(image) is not None
            stages |= set(name[1:])


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


_RULES = ImageRules({"3.11": "python:3.11-slim"}, ("ghcr.io/acme/",), ("registry.test/crews/",))


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


def dockerfiles() -> list[bytes]:
    """Dockerfiles of each form."""
    return words(
        "ARG V=3.11\nFROM python:${V}-slim AS one\nRUN --mount=type=cache,target=/x a \\\n # b\n && c\n"
        'FROM one\nCOPY --from=one --chown=1 ["/a", "/b"]\nADD data/*.txt main.py /x/\nUSER 1\nCMD x\n',
        "FROM scratch\nFROM ghcr.io/acme/x@sha256:" + "0" * 64 + "\nCOPY --from=ghcr.io/acme/y /a /b\n",
        '# escape=`\nFROM ${A:-b}\nRUN <<EOF\nid\nEOF\nWORKDIR /workspace\nSHELL ["/bin/sh"]\n',
    )


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
    FuzzTarget("dockerfile", ("plan",), own_dockerfile, dockerfiles, 2048),
    FuzzTarget("exclude", ("plan",), exclude, excludes, 512),
    FuzzTarget("pip-log", ("plan",), pip_log, logs, 4096),
)
