"""Pins from lock files; those in `lock_files` were written by uv and Poetry."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from plan.config.configuration import Configuration, read_configuration
from plan.errors import PlanError
from plan.packages.dependencies import DependencyDeclaration, read_dependencies
from plan.packages.dockerfile import dockerfile
from tests.testbed.public_index import with_public_index

LOCK_FILES = Path(__file__).parent / "lock_files"
UV = Path(sys.executable).with_name("uv")
PDM_LOCK = """\
[metadata]
groups = ["default", "pdf"]
lock_version = "4.5.0"

[[package]]
name = "uvicorn"
version = "0.30.6"
requires_python = ">=3.8"
dependencies = ["h11>=0.8", "typing-extensions>=4.0; python_version < \\"3.11\\""]
files = [{file = "uvicorn-0.30.6-py3-none-any.whl", hash = "sha256:65fd46fe"}]

[[package]]
name = "uvicorn"
version = "0.30.6"
extras = ["standard"]
dependencies = ["httptools>=0.5.0", "uvicorn==0.30.6"]
files = [{file = "uvicorn-0.30.6-py3-none-any.whl", hash = "sha256:65fd46fe"}]

[[package]]
name = "h11"
version = "0.16.0"
files = [{file = "h11-0.16.0-py3-none-any.whl", hash = "sha256:63cf8bbe"}]

[[package]]
name = "httptools"
version = "0.6.4"
files = [{file = "httptools-0.6.4.tar.gz", hash = "sha256:4e93eee4"}]

[[package]]
name = "pypdf"
version = "4.3.1"
files = [{file = "pypdf-4.3.1-py3-none-any.whl", hash = "sha256:64b31da9"}]
"""
PDM_PROJECT = """\
[project]
name = "crew"
dependencies = ["uvicorn[standard]>=0.30"]
[project.optional-dependencies]
pdf = ["pypdf>=4"]
"""


def tree(name: str, **more: str) -> dict[str, bytes]:
    directory = LOCK_FILES / name
    files = {
        str(path.relative_to(directory)): with_public_index(path.read_text()).encode()
        for path in directory.rglob("*")
        if path.is_file()
    }
    return files | {path: text.encode() for path, text in more.items()}


def declared(
    files: dict[str, bytes], configuration: Configuration | None = None, python: str = "3.12", base: str = ""
) -> DependencyDeclaration:
    return read_dependencies(files, configuration or Configuration("x"), python=python, base=base)


def pins(declaration: DependencyDeclaration) -> dict[str, str]:
    lines = (line.partition(" --hash=")[0] for line in declaration.lines)
    return {line.partition("==")[0]: line.partition("==")[2] for line in lines}


def refusal(
    files: dict[str, bytes], configuration: Configuration | None = None, python: str = "3.12"
) -> PlanError:
    with pytest.raises(PlanError) as raised:
        declared(files, configuration, python)
    assert raised.value.reason == "DependencyResolution"
    return raised.value


@pytest.mark.skipif(shutil.which(UV) is None, reason="uv is not installed (make .venv)")
@pytest.mark.parametrize("options", [(), ("--extra", "pdf"), ("--group", "more"), ("--package", "agent")])
def test_uv_lock_gives_what_uv_exports(options: tuple[str, ...]) -> None:
    command = [str(UV), "export", "--frozen", "--offline", "--no-dev", "--no-header", "--no-annotate"]
    done = subprocess.run(
        [*command, "--python", sys.executable, *options],
        cwd=LOCK_FILES / "workspace",
        capture_output=True,
        text=True,
        check=True,
    )
    # Lines whose marker never holds on Linux with Python 3.12, and the project itself.
    unwanted = ("colorama", "async-timeout", "-e .\n", "-e ./packages/agent")
    expected = {
        re.sub(r" ; python_full_version < '3.15'", "", " ".join(line.split()))
        for line in done.stdout.replace("\\\n", "").splitlines()
        if not line.startswith(unwanted)
    }
    extras = ("pdf",) if "pdf" in options else ()
    groups = ("more",) if "more" in options else ()
    base = "packages/agent" if "agent" in options else ""
    declaration = declared(tree("workspace"), Configuration("x", extras=extras, groups=groups), base=base)
    own = {f"-e ./{path}" for path in declaration.projects if path != "packages/agent"}
    found = {" ".join(sorted(line.split())) for line in (*declaration.lines, *own)}
    assert found == {" ".join(sorted(line.split())) for line in expected}
    assert declaration.locked


def test_uv_lock_needs_no_package_index_for_members() -> None:
    declaration = declared(tree("workspace"))
    assert declaration.origin == "uv.lock"
    assert declaration.projects == ("packages/agent", "packages/shared")
    text = dockerfile("base", declaration)
    assert text.count("--no-deps") == 3
    assert "/workspace/tree/packages/agent /workspace/tree/packages/shared" in text


def test_files_come_from_their_urls_where_the_index_has_dropped_them() -> None:
    declaration = declared(tree("workspace"))
    lock = Pylock.from_dict(tomllib.loads(declaration.files()["pylock.toml"].decode()))
    lines = [
        f"{each.name}=={each.version}" + (f" ; {each.marker}" if each.marker else "")
        for each in lock.packages
    ]
    pinned = [line.partition(" --hash=")[0].replace("'", '"') for line in declaration.lines]
    assert lines == pinned
    written = {
        value
        for package in lock.packages
        for file in (*(package.wheels or ()), package.sdist)
        if file
        for value in file.hashes.values()
    }
    assert written == set(re.findall(r"--hash=sha256:(\w+)", "\n".join(declaration.lines)))
    instructions = dockerfile("base", declaration)
    assert "-r /workspace/declared/pylock.toml --require-hashes" in instructions.partition("||")[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'url = "https://', b'file = "https://'),
        (b'url = "https://', b'url = "git+https://'),
        (b'url = "https://', b'url = "https://\\u0022'),
        (b'hash = "sha256:', b'no = "sha256:'),
    ],
)
def test_a_lock_without_urls_and_hashes_needs_the_index(before: bytes, after: bytes) -> None:
    files = tree("workspace")
    assert before in files["uv.lock"]
    files["uv.lock"] = files["uv.lock"].replace(before, after)
    declaration = declared(files)
    assert "pylock.toml" not in declaration.files() and "pylock" not in dockerfile("base", declaration)


def test_a_private_index_is_the_only_source_of_a_lock() -> None:
    declaration = read_dependencies(tree("poetry"), Configuration("x"), private_index=True)
    assert declaration.locked and "pylock.toml" not in declaration.files()
    files = tree("workspace")
    declaration = read_dependencies(files, Configuration("x"), private_index=True, python="3.12")
    assert declaration.locked and "pylock.toml" not in declaration.files()


def test_an_archive_of_a_lock_keeps_its_url() -> None:
    lock = """\
version = 1
[[package]]
name = "crew"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "tides" }]
[[package]]
name = "tides"
version = "1"
source = { url = "https://files.example.org/tides.tar.gz" }
sdist = { url = "https://files.example.org/tides.tar.gz", hash = "sha256:00aa" }
"""
    files = {
        "pyproject.toml": b"[project]\nname = 'crew'\ndependencies = ['tides']\n",
        "uv.lock": lock.encode(),
    }
    text = declared(files).pylock
    archive = tomllib.loads(text)["packages"][0]["archive"]
    assert archive == {"url": "https://files.example.org/tides.tar.gz", "hashes": {"sha256": "00aa"}}
    files["uv.lock"] = files["uv.lock"].replace(b'gz" }', b'gz", subdirectory = "py" }')
    assert declared(files).pylock == ""


def test_old_patch_releases_get_their_dependencies() -> None:
    # redis needs it before 3.11.3, and the base image may have such a release.
    assert pins(declared(tree("workspace"), python="3.11"))["async-timeout"] == "5.0.1"
    assert "async-timeout" not in pins(declared(tree("workspace"), python="3.12"))


def test_a_package_for_one_machine_keeps_its_marker() -> None:
    assert pins(declared(tree("workspace")))["greenlet"] == "3.5.6 ; platform_machine == 'x86_64'"


def test_poetry_lock() -> None:
    declaration = declared(tree("poetry"))
    assert declaration.origin == "poetry.lock" and declaration.locked
    assert all(" --hash=sha256:" in line for line in declaration.lines)
    assert pins(declaration)["httptools"] == "0.9.0"  # of uvicorn[standard]
    assert "pypdf" not in pins(declaration) and "async-timeout" not in pins(declaration)
    chosen = declared(tree("poetry"), Configuration("x", extras=("pdf",)), "3.11")
    assert {"pypdf", "async-timeout"} <= pins(chosen).keys()


def test_pdm_lock() -> None:
    files = {"pyproject.toml": PDM_PROJECT.encode(), "pdm.lock": PDM_LOCK.encode()}
    assert pins(declared(files)) == {"h11": "0.16.0", "httptools": "0.6.4", "uvicorn": "0.30.6"}
    assert "pypdf" in pins(declared(files, Configuration("x", extras=("pdf",))))


def test_pylock() -> None:
    text = with_public_index((LOCK_FILES / "pylock.toml").read_text())
    locked = {"pylock.toml": text.encode(), **{k: v for k, v in tree("workspace").items() if k != "uv.lock"}}
    assert declared(locked) == DependencyDeclaration(
        **{**vars(declared(tree("workspace"))), "origin": "pylock.toml"}
    )
    alone = {"pylock.toml": b"lock-version = '1.0'\ncreated-by = 'x'\npackages = []\n"}
    assert declared(alone).lines == ()


def test_order_of_declarations() -> None:
    files = tree("workspace", **{"requirements.txt": "six==1.16\n"})
    assert declared(files).lines == ("six==1.16",)
    del files["requirements.txt"]
    assert declared(files).origin == "uv.lock"
    del files["uv.lock"]
    assert declared(files).origin == "pyproject.toml"


def test_the_own_lock_is_read_beside_a_damaged_project() -> None:
    files = tree("workspace", **{"packages/template/pyproject.toml": "{{ name }}\n"})
    assert declared(files).origin == "uv.lock"


def test_a_lock_that_does_not_fit() -> None:
    files = tree("workspace")
    files["pyproject.toml"] = files["pyproject.toml"].replace(b"redis>=5", b"redis>=99")
    error = refusal(files)
    assert error.message == "uv.lock does not fit pyproject.toml: it has redis 8.1.0, not >=99"
    assert error.hint == "Lock again with uv lock, and commit uv.lock."
    files["pyproject.toml"] = files["pyproject.toml"].replace(b"redis>=99", b"flask")
    assert "it has no flask" in refusal(files).message
    poetry = tree("poetry")
    poetry["pyproject.toml"] = poetry["pyproject.toml"].replace(b'redis = "~5.0"', b'redis = "^4"')
    assert "poetry.lock does not fit pyproject.toml: it has redis 5.0.8" in refusal(poetry).message


def test_a_lock_that_does_not_fit_is_ignored_for_langgraph_json() -> None:
    files = tree("poetry")
    files["pyproject.toml"] = files["pyproject.toml"].replace(b'redis = "~5.0"', b'redis = "^4"')
    files |= {
        "langgraph.json": b'{"graphs": {"a": "./a.py:graph"}, "dependencies": ["."]}',
        "a.py": b"graph = 1",
    }
    found = declared(files, read_configuration(files, None))
    assert "redis<5,>=4" in found.lines
    assert found.notes == (
        "poetry.lock does not fit pyproject.toml: it has redis 5.0.8, not <5,>=4",
        "ignored: poetry.lock; the dependencies come from pyproject.toml",
    )
    files["poetry.lock"] = b"damaged"
    assert "poetry.lock is damaged" in refusal(files, read_configuration(files, None)).message


def test_a_lock_for_another_python() -> None:
    assert "is for Python >=3.11, not for 3.10" in refusal(tree("workspace"), python="3.10").message


@pytest.mark.parametrize(
    "change",
    [
        (b'version = "8.1.0"', b'version = "not one"'),
        (b'name = "redis"\nversion', b'name = "-r x"\nversion'),
        (b'hash = "sha256:', b'hash = "sha256:0 --index-url=http://x '),
        (b"[[package]]", b"[package]"),
        (b"source = {", b"sauce = {"),
        (b'marker = "', b'marker = "what '),
    ],
)
def test_a_damaged_lock(change: tuple[bytes, bytes]) -> None:
    files = tree("workspace")
    assert change[0] in files["uv.lock"]
    files["uv.lock"] = files["uv.lock"].replace(*change)
    assert refusal(files).message.startswith("uv.lock ")


@pytest.mark.parametrize("change", [(b'name = "redis"', b"name = 1"), (b"[[packages]]", b"[packages]")])
def test_a_damaged_pylock(change: tuple[bytes, bytes]) -> None:
    data = (LOCK_FILES / "pylock.toml").read_bytes()
    assert refusal({"pylock.toml": data.replace(*change)}).message.startswith("pylock.toml is damaged: ")


def test_extras_of_poetry_must_be_a_list() -> None:
    files = tree("poetry")
    files["pyproject.toml"] = files["pyproject.toml"].replace(b'["pypdf"]', b"1")
    with pytest.raises(PlanError, match="must be a list of strings"):
        declared(files, Configuration("x", extras=("pdf",)))


def test_git_sources_of_a_lock_are_fetched_by_commit() -> None:
    lock = """\
version = 1
requires-python = ">=3.11"
[[package]]
name = "crew"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "mine" }, { name = "other" }, { name = "torch" }]
[[package]]
name = "mine"
version = "1"
source = { git = "https://github.com/team/mine.git?tag=v1&subdirectory=py#0123abc" }
[[package]]
name = "other"
version = "1"
source = { git = "https://git.example.com/team/other#4567def" }
[[package]]
name = "torch"
version = "2.3.0+cpu"
source = { registry = "https://download.example.org/whl/cpu" }
wheels = [{ url = "https://download.example.org/t.whl", hash = "sha256:00aa" }]
"""
    files = {
        "pyproject.toml": b"[project]\nname = 'crew'\ndependencies = ['mine', 'other', 'torch']\n",
        "uv.lock": lock.encode(),
    }
    declaration = declared(files)
    assert declaration.direct == (
        "mine @ https://github.com/team/mine/archive/0123abc.tar.gz#subdirectory=py",
        "other @ git+https://git.example.com/team/other@4567def",
    )
    assert declaration.lines == (
        "--extra-index-url https://download.example.org/whl/cpu",
        "torch==2.3.0+cpu --hash=sha256:00aa",
    )
    files["uv.lock"] = files["uv.lock"].replace(b', hash = "sha256:00aa"', b"")
    assert "the lock lacks hashes" in refusal(files).message


def test_other_lines_are_resolved_beside_pins() -> None:
    extra = Configuration("langgraph.json", requires=("langgraph", "redis"))
    declaration = declared(tree("workspace"), extra)
    assert not declaration.locked and not declaration.hashed
    assert "langgraph" in declaration.lines and "redis" not in declaration.lines
    assert "redis==8.1.0" in declaration.lines


@pytest.mark.parametrize(("key", "name"), [("extras", "docs"), ("groups", "docs")])
def test_unknown_extras_and_groups(key: str, name: str) -> None:
    with pytest.raises(PlanError) as raised:
        declared(tree("workspace"), Configuration("crew.toml", **{key: (name,)}))
    assert raised.value.reason == "ConfigInvalid"
    assert "build names 'docs'" in raised.value.message


@pytest.mark.parametrize(
    ("groups", "markers", "applies"),
    [
        # The group main has no marker, so the package is needed everywhere.
        ('groups = ["main", "dev"]', """{dev = "implementation_name == 'pypy'"}""", True),
        ('groups = ["dev"]', """{dev = "implementation_name == 'pypy'"}""", False),
        (
            'groups = ["main", "dev"]',
            """{main = "python_version >= '3.11'", dev = "implementation_name == 'pypy'"}""",
            True,
        ),
        ('groups = ["main"]', '''"implementation_name == 'pypy'"''', False),
        ('groups = ["main"]', '''"python_version >= '3.11'"''', True),
        ("", """{main = "implementation_name == 'pypy'"}""", False),
        ("", "{}", True),
    ],
)
def test_a_package_of_several_poetry_groups_applies_where_one_needs_it(
    groups: str, markers: str, applies: bool
) -> None:
    files = {
        "pyproject.toml": b"[tool.poetry]\nname = 'crew'\n[tool.poetry.dependencies]\ncffi = '*'\n",
        "poetry.lock": f"""
[[package]]
name = "cffi"
version = "1.17.0"
python-versions = ">=3.8"
{groups}
files = [{{file = "cffi.tar.gz", hash = "sha256:00aa"}}]
markers = {markers}
[metadata]
lock-version = "2.1"
python-versions = "^3.11"
content-hash = ""
""".encode(),
    }
    if applies:
        assert declared(files).lines == ("cffi==1.17.0 --hash=sha256:00aa",)
    else:
        assert "it has no cffi" in refusal(files).message


POETRY_VERSIONS = """
[[package]]
name = "chart"
version = "1.0"
python-versions = ">=3.8"
files = [{file = "chart.tar.gz", hash = "sha256:00aa"}]
[package.dependencies]
numpy = CONSTRAINT

[[package]]
name = "numpy"
version = "1.26.4"
python-versions = ">=3.9"
files = [{file = "numpy1.tar.gz", hash = "sha256:01aa"}]

[[package]]
name = "numpy"
version = "2.2.6"
python-versions = ">=3.10"
files = [{file = "numpy2.tar.gz", hash = "sha256:02aa"}]

[[package]]
name = "plot"
version = "1.0"
python-versions = ">=3.8"
files = [{file = "plot.tar.gz", hash = "sha256:03aa"}]
[package.dependencies]
numpy = {version = ">=1.22", markers = "python_version >= \\"3.9\\""}
[metadata]
lock-version = "2.0"
python-versions = "^3.11"
content-hash = ""
"""


@pytest.mark.parametrize(
    ("constraint", "version"),
    [
        ('">=1.22"', "2.2.6"),
        ('"*"', "2.2.6"),
        ('"^1.22"', "1.26.4"),
        ('"~1.26"', "1.26.4"),
        ('"1.*"', "1.26.4"),
        ('">=1.22,<2.2.6 || >2.2.6,<3.0"', "1.26.4"),
        ('"<1 || >=2,<3"', "2.2.6"),
        ('{version = ">=1.22,<2", extras = ["x"]}', "1.26.4"),
        (
            '[{version = "<2", markers = "python_version < \\"3.12\\""}, '
            '{version = ">=2", markers = "python_version >= \\"3.12\\""}]',
            "2.2.6",
        ),
        ('">=1.0.*"', "2.2.6"),
        ('{path = "../numpy"}', "2.2.6"),
    ],
)
@pytest.mark.parametrize("names", [("chart", "plot"), ("plot", "chart")])
def test_poetry_lock_gives_the_version_that_all_dependants_allow(
    constraint: str, version: str, names: tuple[str, str]
) -> None:
    lines = "".join(f"{name} = '*'\n" for name in names)
    files = {
        "pyproject.toml": f"[tool.poetry]\nname = 'crew'\n[tool.poetry.dependencies]\n{lines}".encode(),
        "poetry.lock": POETRY_VERSIONS.replace("CONSTRAINT", constraint).encode(),
    }
    assert pins(declared(files)) == {"chart": "1.0", "numpy": version, "plot": "1.0"}


@pytest.mark.parametrize(
    "project",
    [
        "[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\nplot = '*'\n",
        "[project]\ndependencies = ['plot']\n[tool.poetry]\npackage-mode = false\n",
    ],
)
def test_poetry_lock_of_a_project_without_a_name(project: str) -> None:
    lock = POETRY_VERSIONS.replace("CONSTRAINT", '"*"')
    declaration = declared({"pyproject.toml": project.encode(), "poetry.lock": lock.encode()})
    assert declaration.origin == "poetry.lock" and declaration.locked
    assert pins(declaration) == {"numpy": "2.2.6", "plot": "1.0"}


def test_each_machine_has_its_own_requirement() -> None:
    lock = """\
version = 1
[[package]]
name = "crew"
version = "0"
source = { virtual = "." }
dependencies = [
    { name = "torch", version = "1", marker = "platform_machine != 'x86_64'" },
    { name = "torch", version = "2", marker = "platform_machine == 'x86_64'" },
]
[[package]]
name = "torch"
version = "1"
source = { registry = "https://public-index.example/simple" }
wheels = [{ url = "https://files.example.org/torch-1.whl", hash = "sha256:01aa" }]
[[package]]
name = "torch"
version = "2"
source = { registry = "https://public-index.example/simple" }
wheels = [{ url = "https://files.example.org/torch-2.whl", hash = "sha256:02aa" }]
"""
    lines = [
        "torch==1; platform_machine != 'x86_64'",
        "torch==2; platform_machine == 'x86_64'",
    ]
    project = f"[project]\nname = 'crew'\ndependencies = {lines}\n"
    files = {"pyproject.toml": project.encode(), "uv.lock": with_public_index(lock).encode()}
    assert [line.partition(" --hash=")[0] for line in declared(files).lines] == [
        "torch==1 ; platform_machine == 'aarch64'",
        "torch==2 ; platform_machine == 'x86_64'",
    ]
    files["pyproject.toml"] = project.replace("torch==2", "torch==3").encode()
    assert "it has torch 2, not ==3" in refusal(files).message


def test_names_of_extras_and_groups_are_normalized() -> None:
    files = tree("workspace")
    for before, after in ((b"pdf = [", b"P_df = ["), (b"more = [", b"Mo_Re = [")):
        assert before in files["pyproject.toml"]
        files["pyproject.toml"] = files["pyproject.toml"].replace(before, after)
    files["uv.lock"] = (
        files["uv.lock"].replace(b"\npdf = [", b"\np-df = [").replace(b"more = [", b"mo-re = [")
    )
    chosen = Configuration("x", extras=("P_df",), groups=("Mo_Re",))
    assert pins(declared(files, chosen)).keys() > pins(declared(files)).keys()


def test_overrides_of_uv_come_before_what_the_project_asks_for() -> None:
    files = tree("workspace")
    files["pyproject.toml"] = files["pyproject.toml"].replace(b"redis>=5", b"redis<5")
    assert "it has redis 8.1.0, not <5" in refusal(files).message
    overrides = b'[manifest]\noverrides = [{ name = "redis", specifier = ">=8" }]\n'
    files["uv.lock"] = files["uv.lock"].replace(b"[manifest]\n", overrides)
    assert pins(declared(files))["redis"] == "8.1.0"


CONFLICTING_EXTRAS = """\
version = 1
conflicts = [[{ package = "crew", extra = "cpu" }, { package = "crew", extra = "gpu" }]]
[[package]]
name = "crew"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "chart" }]
[package.optional-dependencies]
cpu = []
gpu = [{ name = "cuda", marker = "sys_platform != 'darwin' and extra == 'extra-4-crew-gpu'" }]
[[package]]
name = "cuda"
version = "3"
source = { registry = "https://public-index.example/simple" }
resolution-markers = ["extra != 'extra-4-crew-cpu' and extra == 'extra-4-crew-gpu'"]
[[package]]
name = "chart"
version = "1"
source = { registry = "https://public-index.example/simple" }
dependencies = [
    { name = "torch", version = "1", marker = "extra == 'extra-4-crew-cpu'" },
    { name = "torch", version = "2", marker = "extra == 'extra-4-crew-gpu' or extra != 'extra-4-crew-cpu'" },
]
[[package]]
name = "torch"
version = "1"
source = { registry = "https://public-index.example/simple" }
[[package]]
name = "torch"
version = "2"
source = { registry = "https://public-index.example/simple" }
"""


@pytest.mark.parametrize(
    ("names", "chosen"),
    [((), {"torch": "2"}), (("Cpu",), {"torch": "1"}), (("gpu",), {"cuda": "3", "torch": "2"})],
)
@pytest.mark.parametrize("kind", ["extras", "groups"])
def test_conflicting_extras_and_groups_of_uv_choose_the_versions(
    kind: str, names: tuple[str, ...], chosen: dict[str, str]
) -> None:
    table = "project.optional-dependencies" if kind == "extras" else "dependency-groups"
    project = (
        "[project]\nname = 'crew'\ndependencies = ['chart']\n"
        f"[{table}]\ncpu = ['torch==1']\ngpu = ['torch==2', 'cuda']\n"
    )
    lock = with_public_index(CONFLICTING_EXTRAS)
    if kind == "groups":
        lock = lock.replace("'extra-", "'group-").replace("optional-dependencies", "dev-dependencies")
    files = {"pyproject.toml": project.encode(), "uv.lock": lock.encode()}
    assert pins(declared(files, Configuration("x", **{kind: names}))) == {"chart": "1", **chosen}


PDM_PYLOCK = """\
lock-version = "1.0"
created-by = "pdm"
requires-python = ">=3.12"
dependency-groups = ["default", "tools"]
default-groups = ["default"]
[[packages]]
name = "rich"
version = "14.0.0"
marker = '"default" in dependency_groups'
sdist = { name = "rich-14.0.0.tar.gz", path = "rich-14.0.0.tar.gz", hashes = { sha256 = "00aa" } }
[[packages]]
name = "six"
version = "1.16.0"
marker = '"tools" in dependency_groups'
sdist = { name = "six-1.16.0.tar.gz", path = "six-1.16.0.tar.gz", hashes = { sha256 = "01aa" } }
"""


def test_groups_are_installed_with_the_default_groups_of_a_pylock() -> None:
    project = "[project]\nname = 'crew'\ndependencies = ['rich']\n[dependency-groups]\ntools = ['six']\n"
    files = {"pyproject.toml": project.encode(), "pylock.toml": PDM_PYLOCK.encode()}
    assert pins(declared(files)) == {"rich": "14.0.0"}
    assert pins(declared(files, Configuration("x", groups=("tools",)))) == {"rich": "14.0.0", "six": "1.16.0"}


def test_a_pylock_for_another_python() -> None:
    assert (
        "is for Python >=3.12, not for 3.11"
        in refusal({"pylock.toml": PDM_PYLOCK.encode()}, python="3.11").message
    )
