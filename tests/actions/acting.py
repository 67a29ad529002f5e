"""Whole workflows, run by act on this machine without containers."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.actions.runner import ROOT

WORKFLOWS = Path(__file__).parent / "workflows"
CREW = {
    "main.py": """
from pathlib import Path


def kickoff(inputs):
    print("::error::said by the crew")
    Path("artifacts/greeting.txt").write_text(f"hello, {inputs['name']}")
    return {"greeting": f"hello, {inputs['name']}"}
""",
    "crew.toml": '[deployment]\nframework = "python"\nentrypoint = "main:kickoff"\n',
    "notes/a": "x",
    "big.csv": "1,2\n",
}


def tool(name: str) -> str:
    """Where the tool is; the test is skipped where it is not."""
    path = os.pathsep.join([os.environ.get("CREWYARD_TOOLS", ""), os.environ["PATH"]])
    found = shutil.which(name, path=path)
    if not found:
        pytest.skip(f"there is no {name} on PATH or in CREWYARD_TOOLS")
    return found


@dataclass
class Act:
    """A repository with the actions and a crew, and act to run its workflows."""

    home: Path
    secrets: dict[str, str]

    async def run(
        self, workflow: str, seconds: float = 300, variables: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Exit code and log of the workflow; `variables` are what its runner adds to the environment."""
        file = self.home / "secrets"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.secrets.items()))
        process = await asyncio.create_subprocess_exec(
            tool("act"),
            "push",
            *("-W", str(WORKFLOWS / workflow), "-P", "ubuntu-latest=-self-hosted"),
            *(f"--env={name}={value}" for name, value in (variables or {}).items()),
            *("--secret-file", str(file), "--artifact-server-path", "", "--cache-server-path", ""),
            cwd=self.home / "repository",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "XDG_CACHE_HOME": str(self.home / "cache"),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        raw, _ = await asyncio.wait_for(process.communicate(), seconds)
        return process.returncode or 0, raw.decode()


def repository_with_crew(home: Path) -> None:
    """Makes a repository with the actions and the crew, of one commit."""
    repository = home / "repository"
    shutil.copytree(ROOT / "actions", repository / "actions", ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in CREW.items():
        path = repository / "crew" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*who, "commit", "-q", "-m", "Say 'hi' $(id)"],
    ):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
