"""Downloads from a private index with the real step and pip, without leaking the credential."""

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.__main__ import run
from build.errors import InfrastructureError
from build.logs import BuildLog
from build.settings import BuildSettings, IndexCredentials, read_settings
from build.wheels.download import download_wheels, pip_environment
from build.workspace import write_workspace
from plan.errors import PlanError
from plan.packages.dependencies import DependencyDeclaration
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository

from .index import PASSWORD, USERNAME, PackageIndex, serve_index, wheel

CREW = {"main.py": "def kickoff(inputs):\n    return inputs\n"}
MARKER = "later ; python_version >= '3.12'"


def sdist(name: str, version: str, marker: Path) -> bytes:
    """Return a source package whose setup.py creates the marker file."""
    setup = (
        f"open({str(marker)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name={name!r})\n".encode()
    )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        header = tarfile.TarInfo(f"{name}-{version}/setup.py")
        header.size = len(setup)
        archive.addfile(header, io.BytesIO(setup))
    return packed.getvalue()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    files = {
        "house_tools-1.2-py3-none-any.whl": wheel("house_tools", "1.2", ("house_base>=1", MARKER)),
        "house_base-1.0-py3-none-any.whl": wheel("house_base", "1.0"),
        "later-2.0-py3-none-any.whl": wheel("later", "2.0"),
        "source_only-1.0.tar.gz": sdist("source_only", "1.0", tmp_path / "executed"),
    }
    with serve_index(files) as running:
        linked = f"source_only @ {running.url}source-only/source_only-1.0.tar.gz"
        files["linking-1.0-py3-none-any.whl"] = wheel("linking", "1.0", (linked,))
        yield running


def settings(
    index: PackageIndex,
    git: GitServer,
    commit: str,
    python: str = "3.11",
    added: tuple[str, ...] = (),
    **more: Any,
) -> BuildSettings:
    build = {
        "namespace": "crews",
        "project": "demo",
        "source": {"git": {"url": git.url("demo"), "commit": commit, "path": ""}},
        "registry": {"prefix": "127.0.0.1:9", "insecure": True},
        "base_images": {python: f"library/python:{python}-slim"},
        "network": {"allow": ["127.0.0.0/8"]},
        "private_index": "house-index",
        "requirements": [*added],
    }
    return read_settings(
        {
            "CREWYARD_INTERNAL_URL": "http://127.0.0.1:9",
            "CREWYARD_DEPLOYMENT": "dep-one",
            "CREWYARD_TOKEN": "token",
            "CREWYARD_BUILD": json.dumps(build),
            "PIP_INDEX_URL": index.url,
            "INDEX_USERNAME": USERNAME,
            "INDEX_PASSWORD": PASSWORD,
            **more,
        }
    )


def all_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


@pytest.mark.parametrize(
    ("python", "wheels"),
    [
        ("3.11", {"house_base-1.0", "house_tools-1.2"}),
        ("3.12", {"house_base-1.0", "house_tools-1.2", "later-2.0"}),
    ],
)
def test_wheels_for_the_crews_python_without_leaking_the_credential(
    index: PackageIndex, git: GitServer, demo: GitRepository, tmp_path: Path, python: str, wheels: set[str]
) -> None:
    sha = demo.commit({**CREW, "requirements.txt": "house-tools==1.2\n"}, "first")
    workspace, output = tmp_path / "workspace", io.StringIO()
    write_workspace(settings(index, git, sha, python), BuildLog(out=output), workspace)
    downloaded = {path.name.removesuffix("-py3-none-any.whl") for path in (workspace / "wheels").iterdir()}
    assert downloaded == wheels
    assert "house_tools-1.2" in output.getvalue()
    dockerfile = (workspace / "Dockerfile").read_text()
    assert "PIP_NO_INDEX=1 PIP_FIND_LINKS=/workspace/wheels" in dockerfile
    written = all_bytes(workspace) + output.getvalue().encode() + "".join(index.commands).encode()
    assert [secret for secret in index.secrets() if secret in written] == []
    assert any("confined_pip.py" in command for command in index.commands)

    # The install of the builder, without network.
    installed = tmp_path / "installed"
    options = ["--target", str(installed), "--python-version", python, "--only-binary=:all:"]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            *options,
            "-r",
            f"{workspace}/declared/requirements.txt",
        ],
        env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(workspace / "wheels"), "PATH": "/usr/bin:/bin"},
        check=True,
        timeout=120,
    )
    assert (installed / "house_tools.py").exists()


def test_packages_of_the_project_come_from_the_index_too(
    index: PackageIndex, git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    sha = demo.commit(CREW, "first")
    added = settings(index, git, sha, added=("house-tools==1.2",))
    write_workspace(added, BuildLog(out=io.StringIO()), tmp_path)
    downloaded = {path.name.removesuffix("-py3-none-any.whl") for path in (tmp_path / "wheels").iterdir()}
    assert downloaded == {"house_base-1.0", "house_tools-1.2"}
    assert (tmp_path / "declared" / "added.txt").read_text() == "house-tools==1.2\n"


@pytest.mark.parametrize(
    ("line", "part", "hint"),
    [
        ("source-only", "no version of source-only can be installed", "must offer wheels"),
        ("house-tools==9", "no version of house-tools==9 can be installed", "must offer wheels"),
        ("linking", "cannot be installed without executing it", "must offer wheels"),
    ],
)
def test_source_packages_are_never_executed(
    index: PackageIndex, git: GitServer, demo: GitRepository, tmp_path: Path, line: str, part: str, hint: str
) -> None:
    sha = demo.commit({**CREW, "requirements.txt": f"{line}\n"}, "first")
    output = io.StringIO()
    with pytest.raises(PlanError) as raised:
        write_workspace(settings(index, git, sha), BuildLog(out=output), tmp_path / "workspace")
    error = raised.value
    assert error.reason == "DependencyResolution"
    assert part in error.message
    assert hint in error.hint
    written = f"{output.getvalue()}{error.message}{error.hint}".encode()
    assert [secret for secret in index.secrets() if secret in written] == []
    assert not (tmp_path / "executed").exists()


def test_wrong_password(index: PackageIndex, git: GitServer, demo: GitRepository, tmp_path: Path) -> None:
    sha = demo.commit({**CREW, "requirements.txt": "house-tools\n"}, "first")
    wrong = settings(index, git, sha, INDEX_PASSWORD="open-barley")
    output = io.StringIO()
    with pytest.raises(PlanError) as raised:
        write_workspace(wrong, BuildLog(out=output), tmp_path / "workspace")
    assert raised.value.reason == "DependencyResolution"
    assert "rejects the credentials" in raised.value.message
    assert "build.secretRef" in raised.value.hint
    assert "open-barley" not in output.getvalue()


def test_unreachable_index_is_an_infrastructure_error_without_url(
    index: PackageIndex, git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    unreachable = IndexCredentials(
        "http://127.0.0.1:9/private/t0ken-in-the-path/simple", "", "robot", PASSWORD
    )
    output = io.StringIO()
    with pytest.raises(InfrastructureError) as raised:
        download_wheels(
            DependencyDeclaration("x", ("a",)), "3.11", unreachable, tmp_path, BuildLog(out=output), retries=1
        )
    written = output.getvalue() + str(raised.value)
    assert "t0ken" not in written
    assert PASSWORD not in written


def test_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        with pytest.raises(InfrastructureError, match="took longer than 1 s"):
            download_wheels(
                DependencyDeclaration("x", ("a",)),
                "3.11",
                IndexCredentials(url),
                tmp_path,
                BuildLog(out=io.StringIO()),
                1.0,
            )


def test_secret_without_url(index: PackageIndex, git: GitServer, demo: GitRepository) -> None:
    sha = demo.commit({**CREW, "requirements.txt": "x\n"}, "first")
    result, code = run("source", settings(index, git, sha, PIP_INDEX_URL=""), BuildLog(out=io.StringIO()))
    assert (result["reason"], code) == ("DependencyResolution", 1)
    assert "index-url" in result["hint"]


def test_pip_environment(tmp_path: Path) -> None:
    inherited = {
        "CREWYARD_TOKEN": "x",
        "GIT_PASSWORD": "x",
        "PATH": "/bin",
        "PIP_CERT": "/ca",
        "PIP_TARGET": "/",
    }
    index = IndexCredentials("https://h/simple", "https://other/simple", "u", PASSWORD)
    environment = pip_environment(index, tmp_path, inherited)
    assert {"CREWYARD_TOKEN", "GIT_PASSWORD", "PIP_TARGET"} & set(environment) == set()
    assert (environment["PIP_CERT"], environment["PATH"]) == ("/ca", "/bin")
    assert environment["PIP_INDEX_URL"] == "https://u:p%2Fa%3As%20s%25w0rd@h/simple"
    assert environment["PIP_EXTRA_INDEX_URL"] == "https://other/simple"
    assert "PIP_TRUSTED_HOST" not in environment
    plain = IndexCredentials("http://u:p@h:3141/simple", "https://other/simple")
    assert pip_environment(plain, tmp_path, inherited)["PIP_TRUSTED_HOST"] == "h:3141"


_READER = """
import ctypes, os, sys
from build.wheels.download import hide_environment
os.setgroups([]); os.setgid(65532); os.setuid(65532)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # the state of a program started by this user
if sys.argv[1] == "hidden":
    hide_environment()
if os.fork() == 0:
    try:
        open(f"/proc/{os.getppid()}/environ").read(1)
    except PermissionError:
        os._exit(13)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.parametrize(("environment", "code"), [("shown", 0), ("hidden", 13)])
def test_processes_of_the_same_user_cannot_read_the_environment(environment: str, code: int) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    program = [sys.executable, "-c", _READER, environment]
    assert int(subprocess.run(program, capture_output=True, text=True, check=True).stdout) == code


@pytest.mark.parametrize("before", [4090, (64 << 10) - 5, 70_000])
def test_truncated_line_leaks_no_part_of_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    program = tmp_path / "pip.py"
    program.write_text(
        f"print('x' * {before} + 'start-of-a-pass-end-of-it'); print('ERROR: next'); exit(1)\n"
    )
    monkeypatch.setattr("build.wheels.download._PIP", program)
    access = IndexCredentials("http://h/simple", "", "u", "start-of-a-pass-end-of-it")
    output = io.StringIO()
    with pytest.raises((PlanError, InfrastructureError)) as raised:
        download_wheels(
            DependencyDeclaration("r", ("a",)), "3.11", access, tmp_path / "wheels", BuildLog(out=output)
        )
    for text in (output.getvalue(), str(raised.value)):
        assert "start" not in text and "end-of" not in text and "-pass" not in text
    assert "ERROR: next" in output.getvalue()
