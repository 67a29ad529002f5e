"""Fixtures of the client tests: each client installed as its users do, in a separate directory."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clients import generate

ROOT = Path(__file__).parents[2]
NPM = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def run(*argv: object, cwd: Path, seconds: float = 300, **environment: str) -> str:
    """Run a program and return its output; fail the test with all output if it fails."""
    done = subprocess.run(
        [str(argument) for argument in argv],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, f"{argv}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def sources(tmp_path_factory) -> Path:
    """Return clients/typescript, compiled, with its tools."""
    directory = tmp_path_factory.mktemp("typescript") / "package"
    origin = ROOT / "clients" / "typescript"
    shutil.copytree(origin, directory, ignore=shutil.ignore_patterns("node_modules", "dist"))
    generate.install(directory)
    run("npm", "run", "build", "--silent", cwd=directory)
    return directory


@pytest.fixture(scope="session")
def npm_project(sources, tmp_path_factory) -> Path:
    """Return a project with the package `crewyard` installed from `npm pack`."""
    directory = tmp_path_factory.mktemp("npm")
    packed = run("npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", directory, cwd=sources)
    (directory / "package.json").write_text('{"type": "module", "private": true}')
    run("npm", "install", *NPM, f"./{packed.strip().splitlines()[-1]}", cwd=directory)
    return directory


@pytest.fixture(scope="session")
def go_project(tmp_path_factory) -> Path:
    """Return a module that requires crewyard.dev/client from this repository."""
    directory, client = tmp_path_factory.mktemp("go"), ROOT / "clients" / "go"
    text = (client / "go.mod").read_text()
    required = text[text.index("require") :]
    (directory / "go.mod").write_text(
        "module example.com/try\n\ngo 1.24.0\n\nrequire crewyard.dev/client v0.0.0\n\n"
        f"replace crewyard.dev/client => {client}\n\n{required}"
    )
    shutil.copy(client / "go.sum", directory)
    return directory
