"""What the tests of the clients share: each client as its users get it, in a place of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clients import generate

ROOT = Path(__file__).parents[2]
NPM = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def run(*argv: object, cwd: Path, seconds: float = 300, **environment: str) -> str:
    """What a program prints; an AssertionError with all of it where it fails."""
    done = subprocess.run(
        [str(one) for one in argv],
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
    """clients/typescript, compiled, with its tools."""
    place = tmp_path_factory.mktemp("typescript") / "package"
    origin = ROOT / "clients" / "typescript"
    shutil.copytree(origin, place, ignore=shutil.ignore_patterns("node_modules", "dist"))
    generate.install(place)
    run("npm", "run", "build", "--silent", cwd=place)
    return place


@pytest.fixture(scope="session")
def npm_project(sources, tmp_path_factory) -> Path:
    """A project that has installed the package `crewyard`, as `npm pack` makes it."""
    place = tmp_path_factory.mktemp("npm")
    packed = run("npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", place, cwd=sources)
    (place / "package.json").write_text('{"type": "module", "private": true}')
    run("npm", "install", *NPM, f"./{packed.strip().splitlines()[-1]}", cwd=place)
    return place


@pytest.fixture(scope="session")
def go_project(tmp_path_factory) -> Path:
    """A module that requires crewyard.dev/client, from this repository."""
    place, client = tmp_path_factory.mktemp("go"), ROOT / "clients" / "go"
    text = (client / "go.mod").read_text()
    required = text[text.index("require") :]
    (place / "go.mod").write_text(
        "module example.com/try\n\ngo 1.24.0\n\nrequire crewyard.dev/client v0.0.0\n\n"
        f"replace crewyard.dev/client => {client}\n\n{required}"
    )
    shutil.copy(client / "go.sum", place)
    return place
