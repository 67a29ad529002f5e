"""Packages of locks that come from git, a URL, a directory or another index, in each kind of lock."""

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from plan.config.configuration import Configuration
from plan.errors import PlanError
from plan.packages.dependencies import DependencyDeclaration, read_dependencies
from plan.packages.locks.environment import target_environments
from plan.packages.locks.graph import LockedEdge
from tests.testbed.public_index import with_public_index

UV = """\
version = 1
[[package]]
name = "crew"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "tides" }]
[[package]]
name = "Tides"
version = "1.0"
"""
POETRY = """\
[metadata]
lock-version = "2.1"
[[package]]
name = "Tides"
version = "1.0"
python-versions = ">=3.9"
"""
PDM = """\
[metadata]
lock_version = "4.5.0"
[[package]]
name = "Tides"
version = "1.0"
requires_python = ">=3.9"
"""
PYLOCK = """\
lock-version = "1.0"
created-by = "test"
[[packages]]
name = "tides"
version = "1.0"
"""
FILES = 'files = [{file = "tides.tar.gz", hash = "sha256:00aa"}]\n'
HASHES = 'hashes = {sha256 = "00aa"}'
GITHUB = "https://github.com/team/sea"
OTHER = "https://git.example.com/team/sea"
ARCHIVE = "https://files.example.org/tides.tar.gz"
PUBLIC = "https://public-index.example/simple"
INDEX = "https://index.example.org/simple"
FROM_GITHUB = f"tides @ {GITHUB}/archive/0123abc.tar.gz"
FROM_OTHER = f"tides @ git+{OTHER}@0123abc"
BELOW = "#subdirectory=libs/tides"
PINNED = "tides==1.0 --hash=sha256:00aa"
PROJECT = b"[project]\nname = 'tides'\nversion = '1.0'\n"


def declared(kind: str, lock: str, python: str = "3.12") -> DependencyDeclaration:
    files = {
        "pyproject.toml": b"[project]\nname = 'crew'\ndependencies = ['tides']\n",
        "libs/tides/pyproject.toml": PROJECT,
        "wheels/tides-1.0-py3-none-any.whl": b"",
        kind: lock.encode(),
    }
    return read_dependencies(files, Configuration("x"), python=python)


@pytest.mark.parametrize(
    ("kind", "package", "line"),
    [
        ("uv.lock", f'{UV}source = {{git = "{GITHUB}.git?rev=1&subdirectory=libs%2Ftides#0123abc"}}',
         FROM_GITHUB + BELOW),
        ("uv.lock", f'{UV}source = {{git = "{OTHER}/#0123abc"}}', FROM_OTHER),
        ("uv.lock", f'{UV}source = {{git = "ssh://git@git.example.com/sea#0123abc"}}',
         "tides @ git+ssh://git@git.example.com/sea@0123abc"),
        ("poetry.lock", f'{POETRY}[package.source]\ntype = "git"\nurl = "{GITHUB}.git"\n'
         'reference = "main"\nresolved_reference = "0123abc"\nsubdirectory = "libs/tides"',
         FROM_GITHUB + BELOW),
        ("poetry.lock", f'{POETRY}[package.source]\ntype = "git"\nurl = "{OTHER}"\n'
         'reference = "main"\nresolved_reference = "0123abc"', FROM_OTHER),
        ("pdm.lock", f'{PDM}git = "{GITHUB}.git"\nrevision = "0123abc"\nsubdirectory = "libs/tides"',
         FROM_GITHUB + BELOW),
        ("pdm.lock", f'{PDM}git = "{OTHER}"\nrevision = "0123abc"', FROM_OTHER),
        ("pylock.toml", f'{PYLOCK}vcs = {{type = "git", url = "{GITHUB}.git", commit-id = "0123abc", '
         'subdirectory = "libs/tides"}', FROM_GITHUB + BELOW),
        ("pylock.toml", f'{PYLOCK}vcs = {{type = "git", url = "git+{OTHER}", commit-id = "0123abc"}}',
         FROM_OTHER),
        ("uv.lock", f'{UV}source = {{url = "{ARCHIVE}"}}', f"tides @ {ARCHIVE}"),
        ("uv.lock", f'{UV}source = {{url = "{ARCHIVE}", subdirectory = "libs/tides"}}',
         f"tides @ {ARCHIVE}{BELOW}"),
    ],
)  # fmt: skip
def test_a_commit_or_a_url_without_a_hash_is_installed_beside_the_pins(
    kind: str, package: str, line: str
) -> None:
    found = declared(kind, package)
    assert (found.lines, found.direct, found.projects, found.locked) == ((), (line,), (), True)


@pytest.mark.parametrize(
    ("kind", "package", "lines"),
    [
        ("uv.lock", f'{UV}source = {{url = "{ARCHIVE}", subdirectory = "libs/tides"}}\n'
         f'sdist = {{url = "{ARCHIVE}", hash = "sha256:00aa"}}',
         (f"tides @ {ARCHIVE}{BELOW} --hash=sha256:00aa",)),
        ("poetry.lock", f'{POETRY}{FILES}[package.source]\ntype = "url"\nurl = "{ARCHIVE}"',
         (f"tides @ {ARCHIVE} --hash=sha256:00aa",)),
        ("poetry.lock", f'{POETRY}{FILES}[package.source]\ntype = "url"\nurl = "{ARCHIVE}"\n'
         'subdirectory = "libs/tides"', (f"tides @ {ARCHIVE}{BELOW} --hash=sha256:00aa",)),
        ("pdm.lock", f'{PDM}{FILES}url = "{ARCHIVE}"', (f"tides @ {ARCHIVE} --hash=sha256:00aa",)),
        ("pdm.lock", f'{PDM}{FILES}url = "{ARCHIVE}"\nsubdirectory = "libs/tides"',
         (f"tides @ {ARCHIVE}{BELOW} --hash=sha256:00aa",)),
        ("pylock.toml", f'{PYLOCK}archive = {{url = "{ARCHIVE}", {HASHES}}}',
         (f"tides @ {ARCHIVE} --hash=sha256:00aa",)),
        ("pylock.toml", f'{PYLOCK}archive = {{url = "{ARCHIVE}", subdirectory = "libs/tides", {HASHES}}}',
         (f"tides @ {ARCHIVE}{BELOW} --hash=sha256:00aa",)),
        ("uv.lock", f'{UV}source = {{registry = "{INDEX}"}}\nwheels = [{{url = "x", hash = "sha256:00aa"}}]',
         (f"--extra-index-url {INDEX}", PINNED)),
        ("poetry.lock", f'{POETRY}{FILES}[package.source]\ntype = "legacy"\nurl = "{INDEX}"\n'
         'reference = "ours"', (f"--extra-index-url {INDEX}", PINNED)),
        ("pylock.toml", f'{PYLOCK}index = "{INDEX}"\nwheels = [{{name = "tides-1.0-py3-none-any.whl", '
         f'path = "x", {HASHES}}}]', (f"--extra-index-url {INDEX}", PINNED)),
        ("pylock.toml", PYLOCK.removesuffix('version = "1.0"\n')
         + f'archive = {{url = "{ARCHIVE}", {HASHES}}}', (f"tides @ {ARCHIVE} --hash=sha256:00aa",)),
        # Poetry before 1.5.
        ("poetry.lock", f'{POETRY}[metadata.files]\nTides = [{{file = "x", hash = "sha256:00aa"}}]',
         (PINNED,)),
        ("poetry.lock", POETRY.partition("\n")[2].partition("\n")[2] + FILES, (PINNED,)),
        ("pdm.lock", f'{PDM}{FILES}marker = "sys_platform == \'linux\'"', (PINNED,)),
        ("pdm.lock", f'{PDM}{FILES}marker = ""', (PINNED,)),
        ("pdm.lock", f"{PDM}files = []", ("tides==1.0",)),
        ("pdm.lock", PDM, ("tides==1.0",)),
    ],
)  # fmt: skip
def test_a_pin_has_the_hash_and_the_index_of_the_lock(
    kind: str, package: str, lines: tuple[str, ...]
) -> None:
    found = declared(kind, package)
    assert (found.lines, found.direct, found.projects, found.locked) == (lines, (), (), True)


@pytest.mark.parametrize(
    ("kind", "package", "path"),
    [
        ("uv.lock", f'{UV}source = {{virtual = "libs/tides"}}', None),
        ("uv.lock", f'{UV}source = {{directory = "./libs/tides"}}', "libs/tides"),
        ("uv.lock", f'{UV}source = {{editable = "libs/tides"}}', "libs/tides"),
        ("uv.lock", f'{UV}source = {{path = "wheels/tides-1.0-py3-none-any.whl"}}',
         "wheels/tides-1.0-py3-none-any.whl"),
        ("poetry.lock", f'{POETRY}[package.source]\ntype = "directory"\nurl = "./libs/tides"', "libs/tides"),
        ("poetry.lock", f'{POETRY}{FILES}[package.source]\ntype = "file"\n'
         'url = "wheels/tides-1.0-py3-none-any.whl"', "wheels/tides-1.0-py3-none-any.whl"),
        ("pdm.lock", f'{PDM}path = "./libs/tides"', "libs/tides"),
        ("pylock.toml", f'{PYLOCK}directory = {{path = "./libs/tides"}}', "libs/tides"),
        ("pylock.toml", f'{PYLOCK}directory = {{path = "libs", subdirectory = "tides"}}', "libs/tides"),
        ("pylock.toml", f'{PYLOCK}archive = {{path = "./wheels/tides-1.0-py3-none-any.whl", {HASHES}}}',
         "wheels/tides-1.0-py3-none-any.whl"),
    ],
)  # fmt: skip
def test_a_directory_or_archive_of_the_lock_is_one_of_the_repository(
    kind: str, package: str, path: str | None
) -> None:
    found = declared(kind, package)
    assert (found.lines, found.direct, found.projects, found.locked) == (
        (),
        (),
        (path,) if path else (),
        True,
    )


@pytest.mark.parametrize(
    ("kind", "package", "message"),
    [
        ("uv.lock", f'{UV}source = {{registry = "../index"}}',
         "tides comes from ../index, which is not the address"),
        ("uv.lock", f'{UV}source = {{registry = "{INDEX}"}}',
         f"tides comes from {INDEX}, but the lock lacks hashes"),
        ("uv.lock", f'{UV}source = {{directory = "../tides"}}',
         "uv.lock names ../tides, which is outside of the source"),
        ("uv.lock", f'{UV}source = {{git = "file:///srv/sea#0123abc"}}',
         "uv.lock is damaged: tides has the address 'git+file:///srv/sea@0123abc'"),
        ("poetry.lock", f"{POETRY}[package.source]\ntype = 'git'\nurl = '{OTHER}'",
         "poetry.lock is damaged: 'resolved_reference' is missing"),
        ("poetry.lock", POETRY.replace(">=3.9", ">=3.13"), "it has no tides"),
        ("uv.lock", f'{UV}source = {{url = "{ARCHIVE}"}}'.replace("Tides", "-r x"), "uv.lock is damaged: "),
        ("poetry.lock", POETRY.replace("Tides", "-r x"), "poetry.lock is damaged: "),
        ("pdm.lock", PDM.replace(">=3.9", ">=3.13"), "it has no tides"),
        ("pdm.lock", PDM.replace("Tides", "-r x"), "pdm.lock is damaged: "),
        ("pdm.lock", f'{PDM}marker = "sys_platform == \'win32\'"', "it has no tides"),
        ("pdm.lock", f'{PDM}git = "{OTHER}"', "pdm.lock is damaged: 'revision' is missing"),
        ("pylock.toml", f'{PYLOCK}vcs = {{type = "git", path = "../sea", commit-id = "0123abc"}}',
         "pylock.toml is damaged: tides has the address 'git+../sea@0123abc'"),
        ("uv.lock", f'{UV}source = {{git = "file:///{"x" * 400}#0123abc"}}',
         f"uv.lock is damaged: tides has the address 'git+file:///{'x' * 256}"),
        ("uv.lock", f'{UV}source = {{registry = ""}}'.replace('"1.0"', '"one"'),
         "uv.lock is damaged: Invalid version: 'one'"),
        ("pylock.toml", PYLOCK.replace("[[", "environments = [\"sys_platform == 'win32'\"]\n[[")
         + 'directory = {path = "libs/tides"}',
         "it is for other environments than Linux x86_64, Python 3.12"),
        ("pylock.toml", f'{PYLOCK}marker = "extra == \'x\'"\ndirectory = {{path = "libs/tides"}}',
         "pylock.toml is damaged: "),
    ],
)  # fmt: skip
def test_a_lock_that_a_build_cannot_apply_is_refused(kind: str, package: str, message: str) -> None:
    with pytest.raises(PlanError) as raised:
        declared(kind, package)
    assert raised.value.reason == "DependencyResolution" and raised.value.hint
    assert message in raised.value.message and len(raised.value.message) <= 320


@pytest.mark.parametrize(
    ("kind", "lock"),
    [
        ("uv.lock", with_public_index(f'{UV}source = {{registry = "{PUBLIC}"}}')),
        ("poetry.lock", POETRY),
        ("pdm.lock", PDM),
    ],
)
def test_a_lock_may_pin_a_pre_release(kind: str, lock: str) -> None:
    files = {
        "pyproject.toml": b"[project]\nname = 'crew'\ndependencies = ['tides>=0.5']\n",
        kind: lock.replace('"1.0"', '"1.0rc1"').encode(),
    }
    assert read_dependencies(files, Configuration("x")).lines == ("tides==1.0rc1",)


@pytest.mark.parametrize(("kind", "lock"), [("poetry.lock", ""), ("pdm.lock", "")])
def test_a_lock_without_packages_locks_a_project_without_dependencies(kind: str, lock: str) -> None:
    files = {"pyproject.toml": b"[project]\nname = 'crew'\ndependencies = []\n", kind: lock.encode()}
    found = read_dependencies(files, Configuration("x"))
    assert (found.origin, found.lines, found.locked) == (kind, (), True)


@pytest.mark.parametrize(
    ("requirements", "lines", "direct"),
    [
        ("", (PINNED,), ("moon @ git+https://git.example.com/team/sea@0123abc",)),
        ("x==1 --hash=sha256:01", (PINNED, "x==1 --hash=sha256:01", f"moon @ git+{OTHER}@0123abc"), ()),
        ("x==1", ("tides==1.0", "x==1", f"moon @ git+{OTHER}@0123abc"), ()),
        ("-c c.txt", ("tides==1.0", f"moon @ git+{OTHER}@0123abc"), ()),
    ],
)
def test_locks_of_several_directories_stay_complete_without_other_lines(
    requirements: str, lines: tuple[str, ...], direct: tuple[str, ...]
) -> None:
    uv = UV.replace('{ name = "tides" }', '{ name = "tides" }, { name = "shore" }')
    uv += f'source = {{registry = "{PUBLIC}"}}\nsdist = {{url = "{ARCHIVE}", '
    uv += 'hash = "sha256:00aa"}\n[[package]]\nname = "shore"\nsource = {directory = "../libs/shore"}\n'
    pdm = PDM.replace("Tides", "waves") + 'path = "../libs/waves"\n[[package]]\nname = "moon"\n'
    files = {
        "crew/one/pyproject.toml": "[project]\nname = 'crew'\ndependencies = ['tides', 'shore']\n",
        "crew/one/uv.lock": with_public_index(uv),
        "crew/two/pyproject.toml": "[project]\nname = 'two'\ndependencies = ['waves', 'moon']\n",
        "crew/two/pdm.lock": f'{pdm}git = "{OTHER}"\nrevision = "0123abc"\n',
        "crew/libs/shore/setup.py": "",
        "crew/libs/waves/setup.py": "",
        "uv.lock": "",
        **({"crew/requirements.txt": requirements, "crew/c.txt": "y<1\n"} if requirements else {}),
    }
    found = read_dependencies(
        {path: text.encode() for path, text in files.items()},
        Configuration("x", directories=("one", "two"), packages=("git",)),
        base="crew",
    )
    assert found == DependencyDeclaration(
        ("crew/requirements.txt, " if requirements else "") + "crew/one/uv.lock, crew/two/pdm.lock",
        lines,
        ("y<1",) if "c.txt" in requirements else (),
        ("crew/one", "crew/two", "crew/libs/shore", "crew/libs/waves"),
        direct=direct,
        locked=bool(direct),
        system_packages=("git",),
    )


@pytest.mark.parametrize("base", ["", "mono/"])
def test_a_member_of_a_workspace_has_the_lock_of_the_root(base: str) -> None:
    lock = (
        UV.replace('virtual = "."', 'virtual = "packages/crew"') + 'source = {directory = "packages/tides"}\n'
    )
    files = {
        f"{base}pyproject.toml": "[tool.uv.workspace]\nmembers = ['packages/*']\n",
        f"{base}uv.lock": lock,
        f"{base}packages/crew/pyproject.toml": "[project]\nname = 'crew'\ndependencies = ['tides']\n",
        f"{base}packages/crew/pylock.toml": PYLOCK,
        f"{base}packages/tides/pyproject.toml": PROJECT.decode(),
    }
    data = {path: text.encode() for path, text in files.items()}
    found = read_dependencies(data, Configuration("x"), base=f"{base}packages/crew")
    assert (found.origin, found.projects) == (f"{base}uv.lock", (f"{base}packages/tides",))


SUN, SEA = Configuration("x", extras=("sun",)), Configuration("x", groups=("sea",))
POETRY_DIRECTORY = f'{POETRY}[package.source]\ntype = "directory"\nurl = "libs/tides"'
PYLOCK_DIRECTORY = f'{PYLOCK}directory = {{path = "libs/tides"}}'
PYLOCK_SUN = PYLOCK_DIRECTORY.replace("[[", "extras = ['sun']\n[[") + "\nmarker = \"'sun' in extras\""
UV_DIRECTORY = f'{UV}source = {{directory = "libs/tides"}}'


@pytest.mark.parametrize(
    ("kind", "lock", "configuration", "projects"),
    [
        ("poetry.lock", POETRY_DIRECTORY, Configuration("x"), ()),
        ("poetry.lock", POETRY_DIRECTORY, SUN, ("libs/tides",)),
        ("poetry.lock", POETRY_DIRECTORY, SEA, ("libs/tides",)),
        ("pylock.toml", PYLOCK_SUN, Configuration("x"), ()),
        ("pylock.toml", PYLOCK_SUN, SUN, ("libs/tides",)),
        ("pylock.toml", PYLOCK_DIRECTORY, SUN, "it has no extra sun"),
        ("pylock.toml", PYLOCK_DIRECTORY, SEA, "it has no group sea"),
        ("uv.lock", UV_DIRECTORY, SUN, "it has no extra sun"),
        ("uv.lock", UV_DIRECTORY, SEA, "it has no group sea"),
        ("uv.lock", UV_DIRECTORY.replace('"."', '"other"'), Configuration("x"), "it has no project in ."),
    ],
)
def test_extras_and_groups_must_be_in_a_lock(
    kind: str, lock: str, configuration: Configuration, projects: tuple[str, ...] | str
) -> None:
    project = "[project]\nname = 'crew'\ndependencies = []\n[dependency-groups]\nsea = ['tides']\n"
    project += "[project.optional-dependencies]\nsun = ['tides']\n"
    files = {
        "pyproject.toml": project.encode(),
        "libs/tides/pyproject.toml": PROJECT,
        kind: lock.encode(),
    }
    if isinstance(projects, tuple):
        assert read_dependencies(files, configuration, python="3.12").projects == projects
        return
    with pytest.raises(PlanError) as raised:
        read_dependencies(files, configuration, python="3.12")
    assert raised.value.message == f"{kind} does not fit pyproject.toml: {projects}"


def test_a_lock_is_evaluated_for_linux_on_each_machine() -> None:
    found = target_environments("3.12")
    assert [(each.machine, each.values["python_full_version"]) for each in found] == [
        ("x86_64", "3.12.0"),
        ("x86_64", "3.12.99"),
        ("aarch64", "3.12.0"),
        ("aarch64", "3.12.99"),
    ]
    assert found[3].values == {
        "implementation_name": "cpython",
        "implementation_version": "3.12.99",
        "os_name": "posix",
        "platform_machine": "aarch64",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": "3.12.99",
        "python_version": "3.12",
        "sys_platform": "linux",
    }
    assert [found[0].meets(marker) for marker in (None, Marker("extra == 'a'"))] == [True, False]
    assert found[0].meets(Marker("extra == 'a'"), "a")


@pytest.mark.parametrize(
    ("specifiers", "version", "allowed"),
    [((), "1", True), (("<2", ">=3"), "3.1rc1", True), (("<2", ">=3"), "2.5", False), (("<2",), "1", True)],
)
def test_a_dependency_allows_versions_of_any_alternative(
    specifiers: tuple[str, ...], version: str, allowed: bool
) -> None:
    assert LockedEdge("x", specifiers=tuple(map(SpecifierSet, specifiers))).allows(version) is allowed


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (
            "uv.lock",
            f'{UV}source = {{registry = "{PUBLIC}"}}\n'
            'dependencies = [{ name = "Shore"EXTRA }, { name = "weed", marker = "os_name == \'nt\'" }]\n',
            f'source = {{registry = "{PUBLIC}"}}\n[package.optional-dependencies]\n'
            f'Deep_x = [{{ name = "pearl" }}]\n[[package]]\nname = "pearl"\nversion = "3"\n'
            f'source = {{registry = "{PUBLIC}"}}\n',
        ),
        (
            "poetry.lock",
            f"{POETRY}[package.dependencies]\nShore = {{version = '*'EXTRA}}\n"
            "weed = {version = '*', markers = \"os_name == 'nt'\"}\n",
            "[package.dependencies]\n"
            "pearl = {version = '*', optional = true, markers = \"extra == 'deep-x'\"}\n"
            "[[package]]\nname = 'pearl'\nversion = '3'\n",
        ),
        (
            "pdm.lock",
            f"{PDM}dependencies = ['ShoreEXTRA', \"weed; os_name == 'nt'\"]\n",
            "[[package]]\nname = 'shore'\nversion = '2'\nextras = ['Deep_x']\n"
            "dependencies = ['shore==2', 'pearl']\n[[package]]\nname = 'pearl'\nversion = '3'\n",
        ),
    ],
)
def test_an_extra_of_a_dependency_brings_what_it_needs(kind: str, before: str, after: str) -> None:
    def lines(extra: str) -> tuple[str, ...]:
        lock = f"{before}[[package]]\nname = 'shore'\nversion = '2'\n{after}"
        return declared(kind, with_public_index(lock.replace("EXTRA", extra))).lines

    extra = {
        "uv.lock": ', extra = ["deep-X"]',
        "poetry.lock": ", extras = ['deep.x']",
        "pdm.lock": "[deep-X]",
    }
    assert lines("") == ("shore==2", "tides==1.0")
    assert lines(extra[kind]) == ("pearl==3", "shore==2", "tides==1.0")
